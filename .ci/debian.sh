# Sourced by what unpacks programs of Debian's packages into a folder of the checkout; needs no root and installs
# nothing. The caller sets `title`, by which it is called, and `target`, the folder.

partial=$target.partial

fail() {
    printf '%s: %s\n' "$title" "$1" >&2
    [ -z "${advice:-}" ] || printf '  %s\n' "$advice" >&2
    exit 1
}

need_debian() {
    local program
    for program in apt-cache apt-get dpkg; do
        command -v "$program" >/dev/null ||
            fail "this machine has no $program: it only knows how to use Debian's packages"
    done
}

has_candidate() {
    [[ $(apt-cache "${apt[@]}" policy "$1" 2>/dev/null) =~ Candidate:\ [^\(] ]]
}

refresh_lists() {
    [ "${#apt[@]}" != 0 ] || [ "$(id -u)" = 0 ] ||
        fail "apt knows no current $1, and only root can refresh its lists: sudo apt-get update"
    echo "$title: refreshing apt's lists ..."
    apt-get "${apt[@]}" -qq update || fail "apt-get update failed"
}

# Options by which apt knows another suite, in a state of its own: the system's lists stay as they are.
apt=()
use_suite() {
    local state
    state=$(mkdir -p "$partial/apt" && cd "$partial/apt" && pwd)
    mkdir -p "$state/lists/partial" "$state/archives/partial"
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian %s main\n' "$1" \
        >"$state/sources.list"
    apt=(-o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state" -o "Dir::Etc::sourcelist=$state/sources.list"
        -o Dir::Etc::sourceparts=/dev/null)
    refresh_lists "$1"
}

# The packages and what apt would install with them: the names are apt's own, and libraries that are here already stay
# out.
download() {
    mkdir -p "$partial/debs"
    # apt's own download user cannot write here; as root it would only warn about that.
    local names options=(-qq)
    [ "$(id -u)" != 0 ] || options+=(-o APT::Sandbox::User=root)
    names=$(apt-get "${apt[@]}" -s --no-install-recommends install "$@" | awk '$1 == "Inst" { print $2 }') || return 1
    # Nothing to install means that the package is on the system; its files are downloaded all the same.
    [ -n "$names" ] || names=$*
    # shellcheck disable=SC2086 — one word per package
    (cd "$partial/debs" && apt-get "${apt[@]}" "${options[@]}" download $names)
}

unpack() {
    local deb
    for deb in "$partial"/debs/*.deb; do
        dpkg -x "$deb" "$partial/root"
    done
    rm -r "$partial/debs"
}

# A wrapper per tool, so that only these programs see the unpacked libraries; its paths are relative to itself.
# `write_wrappers TOOL[ OPTIONS]...`: options may name `$here`, the folder, and so may what the caller sets in
# `environment`.
write_wrappers() {
    local tool options binary libraries
    mkdir -p "$partial/bin"
    libraries=$(cd "$partial" && find root -name '*.so*' -printf '%h\n' | sort -u |
        awk '{ printf "%s$here/%s", (NR > 1 ? ":" : ""), $0 }')
    for tool in "$@"; do
        options=${tool#"${tool%% *}"}
        tool=${tool%% *}
        binary=$(cd "$partial" && find root/usr -path "*/bin/$tool" -print -quit)
        [ -n "$binary" ] || fail "the packages hold no $tool"
        cat >"$partial/bin/$tool" <<END
#!/bin/sh
here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
${environment:+$environment }LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "\$here/$binary"$options "\$@"
END
        chmod +x "$partial/bin/$tool"
    done
}

works() {
    local tool
    for tool in "$@"; do
        "$target/bin/$tool" --version >/dev/null 2>&1 || return 1
    done
}

# Put what is unpacked in its place, where all of the tools have to start.
finish() {
    rm -rf "$target" "$partial/apt"
    mv "$partial" "$target"
    works "$@" || fail "the unpacked tools do not start: $("$target/bin/$1" --version 2>&1 | head -n 3)"
    echo "$title: unpacked into $target"
}
