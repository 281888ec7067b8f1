#!/bin/sh
# install-servers.sh installs what chokepoint's sandboxes need and this machine
# lacks: a MariaDB (or MySQL) and a Redis (or Valkey) server. It starts no
# service. Where it may not install, it prints the command that does, and fails.
set -eu

# found NAME... : is one of these programs here? Looks where chokepoint looks.
found() (
	PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/libexec
	for name; do
		command -v "$name" >/dev/null 2>&1 && return 0
	done
	return 1
)

missing() {
	found mariadbd mysqld || echo mysql
	found redis-server valkey-server || echo redis
}

# say_how PREFIX : prints the command with which the user can install it.
say_how() {
	echo "chokepoint needs a MariaDB or MySQL and a Redis or Valkey server; missing here: $need" >&2
	if found apt-get; then
		echo "install with: ${1}apt-get install --no-install-recommends $packages" >&2
	elif found dnf; then
		echo "install with: ${1}dnf install mariadb-server valkey" >&2
	elif found pacman; then
		echo "install with: ${1}pacman -S mariadb valkey" >&2
	elif found zypper; then
		echo "install with: ${1}zypper install mariadb valkey" >&2
	elif found apk; then
		echo "install with: ${1}apk add mariadb mariadb-client redis" >&2
	else
		echo "install the programs mariadbd, mariadb-install-db and redis-server so that they are in PATH" >&2
	fi
}

# newest REGEXP : the package whose name matches, the last one by version.
newest() {
	apt-cache --names-only search "^$1\$" | cut -d' ' -f1 | sort -V | tail -n 1
}

# mariadb_packages : the server, and the client for its set-up script. Up to
# Debian 11 and Ubuntu 22.04 their names end in the version.
mariadb_packages() {
	server=$(newest 'mariadb-server-core')
	[ -n "$server" ] || server=$(newest 'mariadb-server-core-[0-9.]+')
	if [ -n "$server" ]; then
		echo "$server mariadb-client-core${server#mariadb-server-core}"
	fi
}

redis_package() {
	for name in redis-server valkey-server; do
		if [ -n "$(newest "$name")" ]; then
			echo "$name"
			return
		fi
	done
}

# choose : the packages for what is missing, as far as apt knows them.
choose() {
	for what in $need; do
		case $what in
		mysql) mariadb_packages ;;
		redis) redis_package ;;
		esac
	done | paste -s -d' ' -
}

# services WORD : the services, of those that the packages may bring, that
# systemctl is-WORD holds for: active or enabled.
services() {
	[ -d /run/systemd/system ] || return 0
	for unit in redis-server redis valkey-server valkey mariadb mysql; do
		if systemctl "is-$1" --quiet "$unit" 2>/dev/null; then
			echo "$unit"
		fi
	done
}

# stop_new BEFORE : stops the services that run now and did not run BEFORE.
stop_new() {
	for unit in $(services active); do
		case " $1 " in
		*" $unit "*) ;;
		*)
			$as_root systemctl stop "$unit"
			echo "install-servers: stopped $unit, which its package had started"
			;;
		esac
	done
}

# tell_enabled BEFORE : names the services that the next boot would start, and
# would not have started BEFORE. Whether it should is the user's choice.
tell_enabled() {
	for unit in $(services enabled); do
		case " $1 " in
		*" $unit "*) ;;
		*) echo "install-servers: $unit would start at the next boot; not needed for chokepoint: ${sudo}systemctl disable $unit" ;;
		esac
	done
}

# forbid_services : packages ask policy-rc.d whether they may start a service;
# 101 is no. A policy that is there already is left alone.
policy=/usr/sbin/policy-rc.d
our_policy=
forbid_services() {
	if [ -e "$policy" ] || [ -L "$policy" ]; then
		return 0
	fi
	our_policy=yes
	printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
	$as_root chmod 755 "$policy"
}

allow_services() {
	if [ -n "$our_policy" ]; then
		our_policy=
		$as_root rm -f "$policy"
	fi
}

# apt_get ARGUMENT... : without questions, and without restarts by needrestart.
apt_get() {
	$as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
		apt-get -q -y -o DPkg::Lock::Timeout=120 "$@"
}

install_packages() {
	ran=$(services active | paste -s -d' ' -)
	enabled=$(services enabled | paste -s -d' ' -)
	trap allow_services EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	forbid_services
	status=0
	# --no-remove: MariaDB's packages exclude MySQL's; that is the user's choice.
	# shellcheck disable=SC2086 # a list of packages
	apt_get install --no-install-recommends --no-remove $packages || status=$?
	allow_services
	stop_new "$ran"
	tell_enabled "$enabled"
	return "$status"
}

need=$(missing | paste -s -d' ' -)
if [ -z "$need" ]; then
	echo "install-servers: a MySQL-flavoured and a Redis-flavoured server are here; nothing to do"
	exit 0
fi

packages="mariadb-server-core mariadb-client-core redis-server"
sudo='sudo ' as_root=''
if [ "$(id -u)" = 0 ]; then
	sudo=''
elif found sudo && sudo -n true 2>/dev/null; then
	as_root='sudo -n'
else
	say_how "$sudo"
	exit 1
fi
if ! found apt-get; then
	say_how "$sudo"
	exit 1
fi

apt_get update || echo "install-servers: apt-get update failed; going on with what apt knows" >&2
packages=$(choose)
if [ -z "$packages" ]; then
	echo "install-servers: apt knows no package for: $need" >&2
	exit 1
fi
echo "install-servers: installing $packages"
if ! install_packages; then
	say_how "$sudo"
	exit 1
fi
need=$(missing | paste -s -d' ' -)
if [ -n "$need" ]; then
	echo "install-servers: still missing: $need" >&2
	exit 1
fi
echo "install-servers: done"
