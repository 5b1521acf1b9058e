// Room: views. The nested graph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/views/context.h"
#include "app/views/graph_draw.h"

namespace pallascope::views {

class GraphPanel {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

  /// Where a box can be clicked, on the screen: its middle, of an open container its title. Nothing if there is no such
  /// box, or if that place is not on the canvas.
  [[nodiscard]] std::optional<ImVec2> screen_centre(std::string_view box_key) const;
  /// Whether boxes or the view move: the next frame must not wait for an event.
  [[nodiscard]] bool animating() const { return moving_; }
  /// Opens or closes all modules of the program that is shown.
  void open_all(bool open);
  /// Whether a layout that was asked for is not drawn yet.
  [[nodiscard]] bool waiting() const { return !graph_ || graph_->request < request_; }
  /// What the selection means in the graph that is drawn.
  [[nodiscard]] const model::GraphMarks& marks() const { return marks_; }
  /// 1 at 100 %.
  [[nodiscard]] float zoom() const { return view_ != nullptr ? view_->zoom : 1; }

 private:
  /// What is kept of a program while another one is open.
  struct View {
    model::OpenGroups open;
    bool chosen = false;  ///< `open` is known: chosen at first with the graph, by a person from then on
    bool placed = false;  ///< centre and zoom are known
    model::Point centre;
    float zoom = 1;
    std::vector<std::pair<model::Point, float>> past;  ///< centre and zoom before each move, the last one last
  };

  void follow_program(Context& context);
  void ask_for_layout(Context& context);
  void take_layout(Context& context);
  void keep_boxes_in_place(const workspace::GraphScene& before);
  void follow_selection(Context& context);
  void reveal(bool centre);
  void draw_toolbar(Context& context);
  void draw_canvas(Context& context);
  void handle_mouse(Context& context, bool hovered, bool active, bool released);
  void draw_key(Context& context);
  void draw_tooltip(Context& context, std::size_t box);
  void search(Context& context);
  void go_to_match(Context& context, int step);

  void toggle(std::size_t box);
  void fit(bool animate, float least = 0.05F);
  void show(const model::Rectangle& area, float zoom, bool animate);
  /// Moves of one gesture (a drag, turns of the wheel in a row) are one for `undo_move`.
  void move_view(model::Point centre, float zoom, bool animate, bool remember = true);
  void undo_move();
  void advance(double now);
  [[nodiscard]] GraphCamera camera() const;
  [[nodiscard]] std::optional<model::Rectangle> bounds_of_marks() const;

  std::map<std::string, View> views_;  ///< by file and graph
  View* view_ = nullptr;
  std::shared_ptr<const session::Compilation> compilation_;
  bool kernels_ = true;

  // Layouts: what was asked for, what is drawn.
  std::optional<model::LayoutMetrics> metrics_;
  std::uint64_t request_ = 0, asked_scene_ = 0;
  model::OpenGroups asked_open_;
  bool asked_kernels_ = true;
  double asked_at_ = 0;
  std::shared_ptr<const workspace::GraphScene> graph_;
  std::string anchor_;  ///< the box that was just opened or closed: it keeps its place on the screen

  // The selection in the drawn graph.
  model::GraphMarks marks_;
  model::Selection marked_;
  std::shared_ptr<const workspace::GraphScene> marks_of_;
  std::shared_ptr<const session::Snapshot> marks_at_;
  std::uint64_t revealed_ = 0;    ///< UiState::selection_number that was brought into view
  std::uint64_t opened_for_ = 0;  ///< and for which groups were opened
  bool first_reveal_ = false;
  model::Selection hinted_selection_;
  std::vector<std::uint32_t> hinted_;

  // Motion.
  std::vector<model::PlacedBox> from_, moved_;
  double boxes_since_ = -1, view_since_ = -1;
  double view_moved_at_ = -1;  ///< ImGui's time of the last move that was remembered or belongs to one that was
  model::Point view_from_, view_to_;
  float zoom_from_ = 1, zoom_to_ = 1;
  bool moving_ = false;

  // The canvas of this frame.
  ImVec2 at_, size_;
  float unit_ = 1;
  int hovered_ = -1;
  bool dragged_ = false;

  // Search.
  std::array<char, 128> text_{};
  std::string searched_;
  std::vector<trace::NodeId> found_;
  std::vector<std::uint32_t> matches_;
  std::shared_ptr<const workspace::GraphScene> matches_of_;
  int match_ = -1;
  bool key_open_ = false;

  GraphPainter painter_;
};

}  // namespace pallascope::views
