#!/bin/sh
# install-mysql.sh unpacks a MySQL server beside the system, into the cache
# folder of chokepoint, where sandboxes find it. Debian has MySQL in its
# unstable suite only, built for that suite's libraries: the server and the
# whole closure of its libraries are unpacked, and the tree's own loader runs
# it. The system's packages and apt state are not touched, and nothing starts.
#
#	install-mysql.sh [FOLDER]     default: ~/.cache/chokepoint/mysql-tree
#
# Packages are verified by apt against Debian's archive keys. Their versions
# move with the suite, so no checksum of them is kept here; the folder's file
# PACKAGES says what was unpacked.
set -eu

suite=sid
package=mysql-server-core
cache=${XDG_CACHE_HOME:-$HOME/.cache}/chokepoint
tree=${1:-$cache/mysql-tree}

fail() {
	echo "install-mysql: $*" >&2
	exit 1
}

if [ -x "$tree/usr/sbin/mysqld" ]; then
	echo "install-mysql: $tree is here: $(head -n 1 "$tree/PACKAGES")"
	exit 0
fi
for tool in apt-get dpkg-deb tar; do
	command -v "$tool" >/dev/null || fail "this needs $tool: only on Debian and its kin"
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || fail "this needs Debian's archive keys: install the package debian-archive-keyring"

# mirror : the first Debian mirror that this machine itself uses.
mirror() {
	cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
		sed -n -e 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' -e 's/^deb[[:space:]]\(\[[^]]*\][[:space:]]*\)\{0,1\}\([^[:space:]]*\).*/\2/p' |
		head -n 1
}
source=$(mirror)
[ -n "$source" ] || fail "no Debian mirror in /etc/apt"

mkdir -p "$(dirname "$tree")"
chmod 700 "$(dirname "$tree")"
work=$(mktemp -d "$(dirname "$tree")/.mysql-tree.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# An apt of its own: lists, cache and an empty dpkg status, so that the closure
# is whole, the C library included.
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/apt/parts" "$work/new"
: >"$work/apt/status"
echo "deb [signed-by=$keyring] $source $suite main" >"$work/apt/sources.list"
cat >"$work/apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$work/apt/sources.list";
Dir::Etc::sourceparts "$work/apt/parts";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$work/apt/parts";
Dir::State::lists "$work/apt/lists";
Dir::State::status "$work/apt/status";
Dir::State::extended_states "$work/apt/extended_states";
Dir::Cache "$work/apt/cache";
Dir::Log "$work/apt";
APT::Install-Recommends "false";
APT::Keep-Downloaded-Packages "true";
Acquire::Languages "none";
Acquire::Retries "3";
DPkg::Post-Invoke "";
DPkg::Pre-Install-Pkgs "";
CONF
[ "$(id -u)" != 0 ] || echo 'APT::Sandbox::User "root";' >>"$work/apt/apt.conf"
APT_CONFIG=$work/apt/apt.conf
export APT_CONFIG
echo "install-mysql: fetching $package of $suite and its libraries (about 60 MB)"
apt-get -qq update || fail "the suite's package lists cannot be fetched"
DEBIAN_FRONTEND=noninteractive apt-get -qq -y --download-only install "$package" >/dev/null || fail "$package cannot be fetched from $suite"

# Merged /usr first: packages ship /usr paths, but the loader's name is in /lib64.
for dir in bin sbin lib lib64; do
	mkdir -p "$work/new/usr/$dir"
	ln -s "usr/$dir" "$work/new/$dir"
done
for deb in "$work"/apt/cache/archives/*.deb; do
	case ${deb##*/} in perl-* | perl_*) continue ;; esac # no server needs it
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/new" --keep-directory-symlink --no-same-owner \
		--exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale
done
(cd "$work/apt/cache/archives" && ls mysql-server-core*.deb && ls -- *.deb) >"$work/new/PACKAGES"
mv -T "$work/new" "$tree" 2>/dev/null || [ -x "$tree/usr/sbin/mysqld" ] || fail "$tree is in the way"
echo "install-mysql: unpacked $(head -n 1 "$tree/PACKAGES") into $tree"
