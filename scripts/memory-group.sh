# memory-group.sh - a memory control group with a limit, so that reads reach the device. Sourced by the recorders.

# make_cgroup MIB - makes the group and sets $cgroup to its folder; calls the caller's `die` if it cannot.
make_cgroup() {
  local base own
  if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then # version 2
    grep -qw memory /sys/fs/cgroup/cgroup.subtree_control || die "memory controller not enabled in /sys/fs/cgroup"
    cgroup=/sys/fs/cgroup/nvlab.$$
    mkdir "$cgroup"
    echo "$(($1 << 20))" >"$cgroup/memory.max"
  else # version 1: below our own group
    base=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
    [[ -n $base ]] || die "no memory cgroup"
    own=$(awk -F: '$2 ~ /(^|,)memory(,|$)/ { print $3; exit }' /proc/self/cgroup)
    [[ -d $base$own ]] || own=
    cgroup=$base${own%/}/nvlab.$$
    mkdir "$cgroup"
    echo "$(($1 << 20))" >"$cgroup/memory.limit_in_bytes"
  fi
}
