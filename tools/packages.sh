# Debian 12 packages by purpose, and how to install the missing ones. Sourced by quickstart, test and .ci/run.
# shellcheck shell=bash

declare -A MM_PACKAGES=(
    [build]="g++ cmake ninja-build ccache pkg-config libboost1.81-dev nlohmann-json3-dev libcli11-dev
             libtomlplusplus-dev libfmt-dev libspdlog-dev prometheus-cpp-dev libpcre2-dev zlib1g-dev libssl-dev"
    [test]="libgtest-dev librapidcheck-dev python3 python3-venv"
    [bench]="libbenchmark-dev libdnnl-dev"
    [lint]="clang-format-14 clang-tidy-14 shellcheck git python3"
)

# say TEXT: one progress line, with the seconds since the script began.
say() { printf '[%4ds] %s\n' "$SECONDS" "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# missing_packages SET...: the names of these sets that dpkg does not report as installed.
missing_packages() {
    local set name
    for set in "$@"; do
        for name in ${MM_PACKAGES[$set]}; do
            [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || printf '%s\n' "$name"
        done
    done | sort -u
}

# install_packages SET...: installs what is missing and nothing else; needs root or sudo only then.
install_packages() {
    if ! command -v dpkg-query >/dev/null; then
        say "not a Debian system: taking the packages as present; CMake names the first that is not"
        return
    fi
    local -a missing as_root=()
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]})) || return 0
    if ((EUID != 0)); then
        command -v sudo >/dev/null ||
            die "these packages are missing, and neither root nor sudo is available to install them." \
                "Ask an administrator for: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    local log
    log=$(mktemp)
    say "installing ${#missing[@]} Debian packages: ${missing[*]}"
    if ! { "${as_root[@]}" apt-get update &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "apt-get failed (whole log: $log). By hand: apt-get update && apt-get install ${missing[*]}"
    fi
    rm -f "$log"
    say "packages installed"
}

# build_preset PRESET [CMAKE OPTIONS] -- TARGET...: configures and builds; ninja prints one line a step.
build_preset() {
    local preset=$1
    shift
    local -a options=()
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    say "configuring build/$preset"
    cmake --preset "$preset" "${options[@]}" >"build/$preset.configure.log" 2>&1 ||
        { cat "build/$preset.configure.log" >&2; die "CMake did not configure; see the lines above"; }
    say "building build/$preset: $* ($(nproc) cores; the first build takes minutes)"
    NINJA_STATUS="[%f/%t %es] " cmake --build "build/$preset" --target "$@" >&2 ||
        die "the build failed; the compiler's message is above"
    say "built"
}
