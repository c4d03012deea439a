package testdb

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

const folderPrefix = "rowfeed-testdb-"

// A process keeps all its servers below one temporary folder per place, with a
// lock in it. A process that was killed cannot remove its folders: the next one
// does, which it may when nobody holds the lock any more.
var (
	diskFolder = sync.OnceValues(func() (*folder, error) { return makeFolder(diskPlace()) })
	fastFolder = sync.OnceValues(func() (*folder, error) {
		if place := memoryPlace(); place != "" {
			return makeFolder(place)
		}
		return diskFolder()
	})
)

// memoryDisk is a folder in memory: PostgreSQL makes a database in 10 ms there
// and in 200 ms on a slow disk.
const memoryDisk = "/dev/shm"

// memoryPlace is the folder in memory where there is one with room for many
// servers and TMPDIR says nothing else; "" otherwise.
func memoryPlace() string {
	const enough = 4 << 30
	if os.Getenv("TMPDIR") == "" && freeBytes(memoryDisk) >= enough {
		return memoryDisk
	}
	return ""
}

// diskPlace is the folder for temporary files, unless servers may not enter it.
func diskPlace() string {
	if place := os.TempDir(); closedFolder(place) == "" {
		return place
	}
	return "/tmp"
}

type folder struct {
	path string
	lock *os.File // open, and so locked, as long as the process lives
}

func makeFolder(place string) (*folder, error) {
	sweepFolders(place)
	path, err := os.MkdirTemp(place, folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("testdb: %w", err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		return nil, fmt.Errorf("testdb: %w", err)
	}
	// Locked before it gets its name, so that no other process finds it unlocked.
	unnamed := filepath.Join(path, "lock.new")
	lock := lockFile(unnamed)
	if lock == nil {
		return nil, fmt.Errorf("testdb: %s cannot be locked", unnamed)
	}
	if err := os.Rename(unnamed, filepath.Join(path, "lock")); err != nil {
		return nil, fmt.Errorf("testdb: %w", err)
	}
	foldersMu.Lock()
	folders = append(folders, path)
	foldersMu.Unlock()
	return &folder{path, lock}, nil
}

var (
	foldersMu sync.Mutex
	folders   []string // made by this process
)

// newFolder makes a folder for one server: on the disk when it is to be durable.
func newFolder(engine string, durable bool) (string, error) {
	parent, err := fastFolder()
	if durable {
		parent, err = diskFolder()
	}
	if err != nil {
		return "", err
	}
	path, err := os.MkdirTemp(parent.path, engine+"-")
	if err != nil {
		return "", fmt.Errorf("testdb: %w", err)
	}
	return path, nil
}

// removeFolders removes what this process made.
func removeFolders() {
	foldersMu.Lock()
	defer foldersMu.Unlock()
	for _, path := range folders {
		_ = os.RemoveAll(path)
	}
}

// sweepFolders removes the folders of processes that are no more.
func sweepFolders(place string) {
	paths, _ := filepath.Glob(filepath.Join(place, folderPrefix+"*"))
	for _, path := range paths {
		name := filepath.Join(path, "lock")
		if !exists(name) {
			continue
		}
		lock := lockFile(name)
		if lock == nil {
			continue
		}
		data, _ := filepath.Glob(filepath.Join(path, "*", "data"))
		for _, d := range data {
			removeSharedMemory(d)
		}
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}
}
