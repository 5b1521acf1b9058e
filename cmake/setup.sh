# Sourced by ./run and ./test (bash). Makes a checkout ready to build, and builds it:
#
#   Debian packages -> .venv with torch and jax -> configured build folder -> the pallascope package
#   in the environment -> ninja
#
# Each step looks first and does only what is missing; when nothing changed since the last time, one
# comparison of a stamp decides that, and no network is touched. All talk goes to standard error.
#
# PALLASCOPE_PYTHON  an existing Python with torch and jax, used instead of .venv
# PALLASCOPE_PRESET  default or debug (CMakePresets.json)
# PALLASCOPE_JOBS    compile jobs at a time; as many as cores unless given
# PALLASCOPE_PIP_ARGS  more arguments for pip install, for example an index with CPU builds of torch

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
preset=${PALLASCOPE_PRESET:-default}
case $preset in
  default) build=$root/build ;;
  debug) build=$root/build-asan ;;
  *) echo "pallascope: PALLASCOPE_PRESET is default or debug, not '$preset'." >&2; exit 2 ;;
esac
jobs=${PALLASCOPE_JOBS:-$(nproc)}
requirements=$root/cmake/requirements.txt
apt_build="build-essential cmake ninja-build ccache mold nlohmann-json3-dev libfmt-dev libzip-dev libcli11-dev libedit-dev \
libglfw3-dev libgl-dev libfreetype-dev fonts-inter fonts-jetbrains-mono fonts-dejavu-core"
apt_test="libgtest-dev libbenchmark-dev librapidcheck-dev libisl-dev xvfb xauth libgl1-mesa-dri"

say() { printf 'pallascope: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }

# Runs a command with its output in a file, which is shown only when the command fails.
quietly() {
  local log=$build/.setup/$1.log
  shift
  "$@" >"$log" 2>&1 </dev/null || { local status=$?; cat "$log" >&2; return $status; }
}

# Debian 12's Python is 3.11. A newer Debian has one that is new enough under its plain name.
choose_python() {
  apt_python="python3.11 python3.11-dev python3.11-venv"
  base_python=/usr/bin/python3.11
  if [ -r /etc/os-release ] && ! grep -q '^VERSION_ID="\?12"\?$' /etc/os-release; then
    apt_python="python3 python3-dev python3-venv"
    base_python=/usr/bin/python3
  fi
  if [ -n "${PALLASCOPE_PYTHON:-}" ]; then
    apt_python=
    python=$PALLASCOPE_PYTHON
    [ ! -d "$python" ] || python=$python/bin/python
    case $python in
      /*) ;;
      */*) python=$PWD/$python ;;
      *) python=$(command -v "$python") || fail "PALLASCOPE_PYTHON=$PALLASCOPE_PYTHON is not a command." ;;
    esac
    [ -x "$python" ] || fail "PALLASCOPE_PYTHON=$PALLASCOPE_PYTHON is not a Python that can be run."
    base_python=$python
  else
    python=$root/.venv/bin/python
  fi
}

# Debian's own tools are taken before others on PATH: two ninjas that take turns rebuild everything.
choose_tools() {
  cmake=/usr/bin/cmake
  [ -x $cmake ] || cmake=$(command -v cmake)
  ninja=/usr/bin/ninja
  [ -x $ninja ] || ninja=$(command -v ninja)
}

install_debian_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "This is not Debian, so nothing is installed; the build needs what these contain:" \
      "$apt_build $apt_test $apt_python"
    return
  fi
  local wanted="$apt_build $apt_test $apt_python" installed missing='' name sudo=''
  # shellcheck disable=SC2016,SC2086
  installed=" $(dpkg-query -W -f='${Package}=${db:Status-Status} ' $wanted 2>/dev/null)"
  for name in $wanted; do
    case $installed in *" $name=installed "*) ;; *) missing="$missing $name" ;; esac
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    sudo="sudo"
    command -v sudo >/dev/null || fail "These Debian packages are missing; as root: apt-get install$missing"
    if [ -n "${CI:-}" ]; then
      sudo="sudo -n"
    else
      [ -t 0 ] || fail "These Debian packages are missing: sudo apt-get install$missing"
      local answer
      read -r -p "pallascope: install with sudo apt-get:$missing? [Y/n] " answer
      case $answer in "" | [Yy]*) ;; *) fail "Not installed. By hand: sudo apt-get install$missing" ;; esac
    fi
  fi
  say "Installing Debian packages:$missing"
  # The list of packages may be stale or absent: without it apt finds nothing, so update first, and let
  # the installation judge.
  # shellcheck disable=SC2086
  quietly apt-update $sudo apt-get update -q || say "apt-get update failed; trying with the old lists."
  # shellcheck disable=SC2086
  quietly apt-install $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing ||
    fail "apt-get could not install$missing"
}

# Says what the environment lacks, one a line; nothing if it fits. With `exact` the pins of
# requirements.txt count, else any version of torch and jax will do.
missing_in_environment() {
  "$python" -I - "$requirements" "$1" <<'PYTHON'
import importlib.metadata, pathlib, sys, sysconfig

if sys.version_info < (3, 11):
    print("Python 3.11 or newer (this is %d.%d)" % sys.version_info[:2])
for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
    if not line or line.startswith("#"):
        continue
    name, _, version = line.partition("==")
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        found = None
    if sys.argv[2] == "exact":
        if not found or found.partition("+")[0] != version:
            print(line)
    elif found is None and name in ("torch", "jax", "jaxlib", "numpy"):
        print(name)
if not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists():
    print("Python's headers (Debian: python3-dev)")
# conda ships the shared library although its Python itself is linked statically.
library = "libpython%d.%d.so" % sys.version_info[:2]
if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
    if not pathlib.Path(sysconfig.get_config_var("LIBDIR") or "", library).exists():
        print("%s (this Python was built without a shared library, which the host process embeds)" % library)
PYTHON
}

pip_install() {
  local quiet=
  [ -t 2 ] || quiet=-q
  # shellcheck disable=SC2086
  "$python" -m pip install --disable-pip-version-check $quiet ${PALLASCOPE_PIP_ARGS:-} "$@" >&2 </dev/null
}

prepare_environment() {
  local missing
  if [ -n "${PALLASCOPE_PYTHON:-}" ]; then
    missing=$(missing_in_environment any) || fail "$python does not work."
    [ -z "$missing" ] || fail "$python lacks: $(printf '%s' "$missing" | paste -sd, | sed 's/,/, /g')."
    return
  fi
  [ -x "$base_python" ] || fail "$base_python is not there (Debian: ${apt_python%% *})."
  if ! "$python" -c '' 2>/dev/null; then
    say "Making .venv with $base_python"
    quietly venv "$base_python" -m venv --clear "$root/.venv" || fail "$base_python could not make .venv."
  elif [ "version = $("$base_python" -V | cut -d' ' -f2)" != "$(grep '^version = ' "$root/.venv/pyvenv.cfg")" ]; then
    # The embedded libpython and the environment must be of one patch level.
    say "Python was updated since .venv was made; updating .venv"
    quietly venv "$base_python" -m venv --upgrade "$root/.venv" || fail "$base_python could not update .venv."
  fi
  missing=$(missing_in_environment exact) || fail "$python does not work; delete .venv and try again."
  [ -n "$missing" ] || return 0
  case $missing in *==*) ;; *) fail "$python lacks: $missing" ;; esac
  if printf '%s\n' "$missing" | grep -q '^torch=='; then
    say "Installing $(grep '^torch==' "$requirements") into .venv (a large download)"
    pip_install "$(grep '^torch==' "$requirements")" || fail "pip could not install torch into .venv."
    if "$python" -m pip list 2>/dev/null | grep -qi '^nvidia-'; then
      say "Note: this is PyTorch's CUDA build, 5 GB on disk. The CPU build is enough: to have it, delete" \
        ".venv and start again with PALLASCOPE_PIP_ARGS='--extra-index-url URL', where URL is PyTorch's" \
        "own index of CPU builds (its installation page names it)."
    fi
  fi
  say "Installing the rest of cmake/requirements.txt into .venv"
  pip_install -r "$requirements" || fail "pip could not install what cmake/requirements.txt lists."
  missing=$(missing_in_environment exact)
  [ -z "$missing" ] || fail "After the installation .venv still lacks: $missing"
}

# The package is used from where it lies: a .pth file names its folder and that of the built extension.
# The dist-info makes pip list (and uninstall) know it.
install_package() {
  "$python" -I - "$root" "$build" "$version" "$1" <<'PYTHON'
import pathlib, shutil, sys, sysconfig

root, build, version, mode = sys.argv[1:]
site = pathlib.Path(sysconfig.get_path("purelib"))
info = site / f"pallascope-{version}.dist-info"
path_file = site / "pallascope.pth"
want = {
    path_file: f"{root}/python_bridge\n{build}/python\n",
    info / "METADATA": "Metadata-Version: 2.1\nName: pallascope\n"
    f"Version: {version}\nSummary: Lowers traced PyTorch graphs to JAX Pallas kernels and shows how\n"
    "License: MIT\nRequires-Python: >=3.11\nRequires-Dist: torch\nRequires-Dist: jax\n",
    info / "INSTALLER": "pallascope\n",
    info / "top_level.txt": "pallascope\n_pallascope_core\n",
    info / "direct_url.json": '{"url": "file://%s", "dir_info": {"editable": true}}\n' % root,
}
entry_points = pathlib.Path(root, "python_bridge", "entry_points.txt")
if entry_points.exists():
    want[info / "entry_points.txt"] = entry_points.read_text()
want[info / "RECORD"] = "".join(
    f"{name.relative_to(site).as_posix()},,\n" for name in [*want, info / "RECORD"]
)
if all(name.is_file() and name.read_text() == text for name, text in want.items()):
    sys.exit(0)
try:
    for old in site.glob("pallascope-*.dist-info"):
        shutil.rmtree(old)
    info.mkdir()
    for name, text in want.items():
        name.write_text(text)
except OSError as error:
    sys.exit(f"pallascope: the package could not be put into {site}: {error}")
PYTHON
}

configure() {
  local fresh=
  if [ -f "$build/CMakeCache.txt" ]; then
    # What CMake found for one Python or folder is wrong for another.
    grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt" &&
      grep -qE "^Python_EXECUTABLE:[A-Z]+=$python\$" "$build/CMakeCache.txt" &&
      grep -qxF "# python $python_version" "$build/.setup/stamp" 2>/dev/null || fresh=--fresh
  fi
  say "Configuring into ${build#"$root"/}/"
  (cd "$root" && quietly configure "$cmake" --preset "$preset" $fresh \
    -DPython_EXECUTABLE="$python" -DCMAKE_MAKE_PROGRAM="$ninja") || fail "CMake could not configure (see above)."
}

# What decides whether the steps before the build have anything to do.
wanted_stamp() {
  echo "# python $python_version"
  printf '%s\n' "$root" "$python" "$apt_build" "$apt_test" "$apt_python" "$cmake" "$ninja" "$version"
  cat "$requirements" "$root/cmake/setup.sh" "$root/CMakePresets.json" "$root"/python_bridge/entry_points.txt 2>/dev/null
}

# setup TARGET...: makes everything ready and builds the targets.
setup() {
  mkdir -p "$build/.setup" || fail "$build cannot be written."
  exec 9>"$build/.setup/lock"
  if command -v flock >/dev/null && ! flock -n 9; then
    say "Waiting for another ./run or ./test in this folder"
    flock 9
  fi
  # ccache keeps its files below HOME unless told otherwise.
  if [ -z "${CCACHE_DIR:-}" ] && ! mkdir -p "${HOME:-/nonexistent}/.cache" 2>/dev/null; then
    export CCACHE_DIR=$build/_ccache
  fi
  version=$(sed -n 's/^project(pallascope VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
  choose_python
  python_version=$("$base_python" -V 2>/dev/null)
  choose_tools
  if [ ! -x "$python" ] || [ ! -f "$build/build.ninja" ] ||
    [ "$(wanted_stamp)" != "$(cat "$build/.setup/stamp" 2>/dev/null)" ]; then
    install_debian_packages
    choose_tools
    [ -n "$cmake" ] || fail "CMake is not installed (Debian: cmake)."
    [ -n "$ninja" ] || fail "Ninja is not installed (Debian: ninja-build)."
    prepare_environment
    python_version=$("$base_python" -V)
    configure
    [ "$preset" != default ] || install_package || fail "The pallascope package is not installed."
    wanted_stamp >"$build/.setup/stamp"
  fi
  # Ninja's own output goes to standard error, without the two lines it always has to say.
  "$ninja" -C "$build" -j "$jobs" "$@" 2>&1 9>&- |
    grep --line-buffered -vE '^ninja: (no work to do\.|Entering directory)|Re-checking globbed directories' >&2
  [ "${PIPESTATUS[0]}" = 0 ] || fail "The build failed (see above)."
  exec 9>&-
}
