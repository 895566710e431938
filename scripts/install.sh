#!/bin/sh
# Installs the newest release of Practicum into ~/.local/bin, after checking its checksum:
#
#   curl -fsSL https://raw.githubusercontent.com/practicum-dev/practicum/main/scripts/install.sh | sh
#
# PRACTICUM_VERSION chooses another release (such as 0.1.0), PRACTICUM_INSTALL_DIR another folder, and
# PRACTICUM_DOWNLOAD_URL another place that has the archives (a mirror, or a folder as file:///…).
set -eu

fail() {
    echo "error: $1" >&2
    exit 1
}

case "$(uname -s)" in
    Linux) system=unknown-linux-gnu ;;
    Darwin) system=apple-darwin ;;
    *) fail "there is no practicum for $(uname -s); on Windows, use WSL" ;;
esac
case "$(uname -m)" in
    x86_64 | amd64) processor=x86_64 ;;
    aarch64 | arm64) processor=aarch64 ;;
    *) fail "there is no practicum for the processor $(uname -m)" ;;
esac
target=$processor-$system

repository=https://github.com/practicum-dev/practicum
version=${PRACTICUM_VERSION:-}
if [ -z "$version" ]; then
    # The address of the newest release ends with its tag.
    version=$(curl -fsSLI -o /dev/null -w '%{url_effective}' "$repository/releases/latest" | sed 's|.*/v||')
    [ -n "$version" ] || fail "the newest release could not be found; set PRACTICUM_VERSION"
fi
source=${PRACTICUM_DOWNLOAD_URL:-$repository/releases/download/v$version}
folder=${PRACTICUM_INSTALL_DIR:-$HOME/.local/bin}
archive=practicum-$version-$target.tar.gz

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
curl -fsSL -o "$temporary/$archive" "$source/$archive" || fail "$source/$archive could not be downloaded"
curl -fsSL -o "$temporary/$archive.sha256" "$source/$archive.sha256" || fail "the checksum could not be downloaded"
(
    cd "$temporary"
    if command -v sha256sum >/dev/null; then
        sha256sum -c "$archive.sha256" >/dev/null
    else
        shasum -a 256 -c "$archive.sha256" >/dev/null
    fi
) || fail "the checksum of $archive is wrong; nothing was installed"
tar -xzf "$temporary/$archive" -C "$temporary"
mkdir -p "$folder"
# A running program cannot be overwritten, but it can be replaced.
cp "$temporary/practicum-$version-$target/practicum" "$folder/.practicum.new"
chmod 755 "$folder/.practicum.new"
mv "$folder/.practicum.new" "$folder/practicum"
echo "installed $("$folder/practicum" --version) in $folder"
case ":$PATH:" in
    *":$folder:"*) echo "next: practicum demo" ;;
    *) echo "next: add $folder to your PATH, then: practicum demo" ;;
esac
