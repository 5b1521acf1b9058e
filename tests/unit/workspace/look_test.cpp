// How the window looks, from one run to the next.
#include "app/workspace/look.h"

#include <gtest/gtest.h>

#include "tests/unit/repl/support.h"

namespace pallascope::workspace {
namespace {

TEST(Look, IsReadAsItWasWritten) {
  const repl::Folder folder;
  const auto path = folder.path() / "state" / "deep" / "look.json";
  EXPECT_EQ(load_look(path), Look());
  for (const Look look : {Look{false, 1.1F}, Look{true, 2.5F}}) {
    ASSERT_TRUE(save_look(path, look));
    EXPECT_EQ(load_look(path).dark, look.dark);
    EXPECT_FLOAT_EQ(load_look(path).scale, look.scale);
  }
}

TEST(Look, WhatMakesNoSenseIsAsOutOfTheBox) {
  const repl::Folder folder;
  for (const char* text : {"", "[]", "{\"theme\": 3, \"scale\": \"big\"}", "{\"theme\": \"li"})
    EXPECT_EQ(load_look(folder.write("look.json", text)), Look()) << text;
  EXPECT_EQ(load_look(folder.write("look.json", "{\"scale\": 1e30}")).scale, largest_scale);
  EXPECT_EQ(load_look(folder.write("look.json", "{\"scale\": 0}")).scale, smallest_scale);
}

}  // namespace
}  // namespace pallascope::workspace
