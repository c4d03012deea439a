package sqlite

import (
	"bufio"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/rowfeed/rowfeed/dialect"
)

// The bytes that writers lock: of the file itself, and with a write-ahead log of the one beside it
// (https://www.sqlite.org/lockingv3.html, https://www.sqlite.org/walformat.html#wal_locks).
const (
	reservedByte = 0x40000001
	walWriteByte = 120
)

// writers are the processes that have the write lock; false where the system does not tell. The
// file is not opened for it: to close it would end the locks that this process has on it.
func writers(path string) (pids []int, told bool) {
	byInode := map[string]int64{}
	for suffix, at := range map[string]int64{"": reservedByte, "-shm": walWriteByte} {
		if info, err := os.Stat(path + suffix); err == nil {
			byInode[strconv.FormatUint(info.Sys().(*syscall.Stat_t).Ino, 10)] = at
		}
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return nil, false
	}
	defer locks.Close()
	lines := bufio.NewScanner(locks)
	for lines.Scan() {
		// 1: POSIX ADVISORY WRITE 4711 fd:00:1234 120 120; who waits has -> before POSIX. Of
		// the device it has a number that need not be stat's.
		f := strings.Fields(lines.Text())
		if len(f) != 8 || f[3] != "WRITE" {
			continue
		}
		at, ok := byInode[f[5][strings.LastIndex(f[5], ":")+1:]]
		from, wrong := strconv.ParseInt(f[6], 10, 64)
		to, err := strconv.ParseInt(f[7], 10, 64) // or EOF
		if pid, no := strconv.Atoi(f[4]); ok && no == nil && wrong == nil && from <= at && (err != nil || at <= to) {
			pids = append(pids, pid)
		}
	}
	return pids, lines.Err() == nil
}

// process is what the system tells of one. How it was called stays out: there may be passwords among it.
func process(pid int) dialect.Blocker {
	b := dialect.Blocker{Session: "pid " + strconv.Itoa(pid), AgeMicros: -1, Scope: "has the write lock of the file"}
	b.Host, _ = os.Hostname()
	folder := "/proc/" + strconv.Itoa(pid)
	if info, err := os.Stat(folder); err == nil {
		b.User = strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10)
		if u, err := user.LookupId(b.User); err == nil {
			b.User = u.Username
		}
	}
	if name, err := os.ReadFile(folder + "/comm"); err == nil {
		b.Statement = "process " + strings.TrimSpace(string(name))
	}
	return b
}
