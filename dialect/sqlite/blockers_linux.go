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

// These are the bytes that a writer locks: in the file itself or, with a write-ahead log, in the file with
// suffix -shm. See https://www.sqlite.org/lockingv3.html and https://www.sqlite.org/walformat.html#wal_locks.
const (
	reservedByte = 0x40000001
	walWriteByte = 120
)

// writers returns the processes that have the write lock. It is false if the system does not tell. It does not
// open the database file: closing it would release the locks that this process has on it.
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
		// The format is "1: POSIX ADVISORY WRITE 4711 fd:00:1234 120 120". A process that waits has "->" before
		// POSIX, and so one field more. The number of the device may differ from that of stat, so only the
		// inode is compared.
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

// process describes a process. It leaves out the command line, which may have passwords in it.
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
