#!/bin/sh
# install-tree.sh unpacks servers of Debian's unstable suite beside the system,
# into the cache folder of chokepoint, where sandboxes find them: MySQL, which
# Debian has in no other suite, or the newest Redis and Valkey. The servers and
# the whole closure of their libraries are unpacked, and the tree's own loader
# runs them. The system's packages and apt state are not touched, and nothing
# starts.
#
#	install-tree.sh mysql|redis [FOLDER]     default: ~/.cache/chokepoint/NAME-tree
#
# Packages are verified by apt against Debian's archive keys. tested.sha256 has
# the checksums of those that this project was tested with; versions move with
# the suite, so others are used too, and named. The folder's file PACKAGES says
# what was unpacked.
set -eu

suite=sid
here=$(cd "$(dirname "$0")" && pwd)
name=${1:-}
case $name in
mysql) packages='mysql-server-core' programs='usr/sbin/mysqld' size=60 ;;
redis) packages='redis-server valkey-server' programs='usr/bin/redis-server usr/bin/valkey-server' size=30 ;;
*)
	echo "usage: install-tree.sh mysql|redis [FOLDER]" >&2
	exit 2
	;;
esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/chokepoint
tree=${2:-$cache/$name-tree}

fail() {
	echo "install-tree: $*" >&2
	exit 1
}

# complete TREE : are all programs in it?
complete() {
	for program in $programs; do
		[ -x "$1/$program" ] || return 1
	done
}

if complete "$tree"; then
	echo "install-tree: $tree is here: $(head -n 1 "$tree/PACKAGES")"
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

# The cache folder is ours alone; another folder stays as it is.
parent=$(dirname "$tree")
[ -d "$parent" ] || mkdir -p -m 700 "$parent"
work=$(mktemp -d "$parent/.$name-tree.XXXXXX")
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
echo "install-tree: fetching $packages of $suite and their libraries (about $size MB)"
apt-get -qq update || fail "the suite's package lists cannot be fetched"
# shellcheck disable=SC2086 # a list of packages
DEBIAN_FRONTEND=noninteractive apt-get -qq -y --download-only install $packages >/dev/null || fail "$packages cannot be fetched from $suite"

# What is listed must have the listed checksum; what is not is newer or older.
archives=$work/apt/cache/archives
if other=$(cd "$archives" && sha256sum -- *.deb | grep -vxFf "$here/tested.sha256"); then
	for deb in $(echo "$other" | cut -c67-); do
		! grep -q "  $deb\$" "$here/tested.sha256" || fail "$deb is not what it was when this was tested: its checksum differs"
	done
	echo "install-tree: $(echo "$other" | wc -l) packages are of other versions than those tested with"
fi

# Merged /usr first: packages ship /usr paths, but the loader's name is in /lib64.
for dir in bin sbin lib lib64; do
	mkdir -p "$work/new/usr/$dir"
	ln -s "usr/$dir" "$work/new/$dir"
done
for deb in "$archives"/*.deb; do
	case ${deb##*/} in perl-* | perl_* | systemd_*) continue ;; esac # no server needs them
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/new" --keep-directory-symlink --no-same-owner \
		--exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale
done
{
	for package in $packages; do
		(cd "$archives" && echo "$package"_*.deb)
	done | paste -s -d' ' -
	(cd "$archives" && sha256sum -- *.deb)
} >"$work/new/PACKAGES"
mv -T "$work/new" "$tree" 2>/dev/null || complete "$tree" || fail "$tree is in the way"
echo "install-tree: unpacked $(head -n 1 "$tree/PACKAGES") into $tree"
