# SPDX-License-Identifier: Apache-2.0
# Where Boost.Asio is young enough: Debian 12 has a package of its own for that, which cannot be
# installed beside the default one. If that is there, it stays, and tests of newer parts are skipped.
boost_package() {
  case "$(dpkg-query -W -f '${Status}' libboost1.74-dev 2>/dev/null)" in
    *" installed") echo libboost1.74-dev; return ;;
  esac
  case "$(. /etc/os-release 2>/dev/null && echo "${ID-} ${VERSION_ID-}")" in
    "debian 12") echo libboost1.81-dev ;;
    *) echo libboost-dev ;;
  esac
}

# need_packages NAME...: installs those of Debian's or Ubuntu's packages that are missing. It asks
# for root only if some are missing.
need_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "packages: this is not Debian or Ubuntu; install the equivalents of these: $*" >&2
    return 0
  fi
  missing=""
  for package in "$@"; do
    case "$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null)" in
      *" installed") ;;
      *) missing="$missing $package" ;;
    esac
  done
  [ -n "$missing" ] || return 0

  as_root=""
  if [ "$(id -u)" != 0 ]; then
    as_root="sudo"
    if ! command -v sudo >/dev/null; then
      echo "packages: missing:$missing" >&2
      echo "packages: only root may install them. Fix: as root, apt-get install$missing" >&2
      return 1
    fi
  fi
  echo "packages: installing$missing"
  $as_root apt-get update -q &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
    --no-remove $missing
}
