package testdb

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// starts carries commands to the thread that starts them; see start.
var (
	starts      = make(chan func())
	startThread = sync.OnceFunc(func() {
		go func() {
			runtime.LockOSThread()
			for f := range starts {
				f()
			}
		}()
	})
)

// start starts a command that the kernel kills when this process dies, however
// it dies. The kernel's promise hangs on the thread that started the command,
// not on the process, so one thread that lives on starts them all.
func start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	startThread()
	done := make(chan error)
	starts <- func() { done <- cmd.Start() }
	return <-done
}

// unprivileged is the user whom servers run as when we are root, which they
// refuse to be; nil when we are somebody else.
var unprivileged = sync.OnceValue(func() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "mysql", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if errors.Join(err1, err2) == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	panic("testdb: running as root, and none of the users postgres, mysql, nobody exists")
})

// dropPrivileges makes cmd run as the unprivileged user when we are root.
func dropPrivileges(cmd *exec.Cmd) {
	if who := unprivileged(); who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
}

// closedFolder names the folder on the way to path that does not let the
// unprivileged user in, as /root does not; "" when all do.
func closedFolder(path string) string {
	if unprivileged() == nil {
		return ""
	}
	for dir := path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o001 == 0 {
			return dir
		}
	}
	return ""
}

// giveAway makes the unprivileged user own a folder and all that is in it.
func giveAway(folder string) error {
	who := unprivileged()
	if who == nil {
		return nil
	}
	return filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(who.Uid), int(who.Gid))
	})
}

// freeze stops a process and all its children. The parent goes first: from then
// on no child is born, and dead ones keep their process id.
func freeze(pid int) []int {
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	deadline := time.Now().Add(patience)
	for state(pid) != 'T' && state(pid) != 'Z' && state(pid) != 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	children := childrenOf(pid)
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGSTOP)
	}
	return children
}

// thaw lets them go on.
func thaw(pid int, children []int) {
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGCONT)
	}
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// killTree kills a process and its children in one stroke, as a power cut
// would, and returns when the children are gone; the caller waits for the
// process itself.
func killTree(pid int) error {
	children := freeze(pid)
	for _, p := range append(children, pid) {
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
	deadline := time.Now().Add(patience)
	for _, child := range children {
		// A zombie holds nothing any more; init collects it in its own time.
		for s := state(child); s != 0 && s != 'Z'; s = state(child) {
			if time.Now().After(deadline) {
				return fmt.Errorf("testdb: process %d does not go away (state %c)", child, s)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// childrenOf lists the children of a process.
func childrenOf(pid int) []int {
	entries, _ := os.ReadDir("/proc")
	var children []int
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if fields := stat(child); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			children = append(children, child)
		}
	}
	return children
}

// state is the kernel's letter for what a process does; 0 when there is none.
func state(pid int) byte {
	if fields := stat(pid); len(fields) > 0 {
		return fields[0][0]
	}
	return 0
}

// stat returns /proc/<pid>/stat from the field after the name, which may hold
// blanks and brackets: state, parent, …
func stat(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// removeSharedMemory removes the System V segment that a killed PostgreSQL
// leaves: line 7 of postmaster.pid has its key and id. Segments are few on a
// machine, so killed test servers would use them up.
func removeSharedMemory(data string) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return
	}
	var key, id int
	if _, err := fmt.Sscan(lines[6], &key, &id); err != nil {
		return
	}
	// The id may be another segment's by now.
	var segment unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &segment); err != nil || int(segment.Perm.Key) != key ||
		segment.Nattch > 0 {
		return
	}
	_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
}

// lockFile takes an exclusive lock on a file, which ends with this process; nil
// when somebody else has it.
func lockFile(path string) *os.File {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil
	}
	return f
}

// reserve reserves a port among the test processes of this machine, until release is called or this process ends. It
// returns nil if another process has reserved the port. Several suites run at a time, and a server that was killed must
// not find another suite's server at its port. The reservation is the name of an abstract socket, which is unique and
// leaves nothing in the file system.
func reserve(port int) (release func()) {
	l, err := net.Listen("unix", "@rowfeed-testdb-port-"+strconv.Itoa(port))
	if err != nil {
		return nil
	}
	return func() { _ = l.Close() }
}

// freeBytes is the room left where path lies; 0 when that cannot be told.
func freeBytes(path string) uint64 {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}
