package testdb

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// programs are the executables of an engine. Which fields are set depends on the engine.
type programs struct {
	server  string // postgres, mariadbd, mysqld
	install string // initdb, mariadb-install-db
	dump    string // pg_dump, mariadb-dump; "" if the engine has none
	data    string // MySQL: a new data folder to copy
}

var foundPrograms sync.Map // Engine -> func() (programs, error)

// findPrograms finds an engine's executables, once per process.
func findPrograms(e Engine) (programs, error) {
	find, _ := foundPrograms.LoadOrStore(e, sync.OnceValues(func() (programs, error) {
		p, err := lookForPrograms(e)
		if err != nil && !e.lent() {
			err = fmt.Errorf("%w; run scripts/setup.sh", err)
		}
		if closed := closedFolder(p.server); err == nil && closed != "" {
			err = fmt.Errorf("servers do not run as root, and other users cannot enter %s; see ROWFEED_ENGINES_DIR",
				closed)
		}
		return p, err
	}))
	return find.(func() (programs, error))()
}

func lookForPrograms(e Engine) (programs, error) {
	switch e {
	case SQLite:
		return programs{}, nil
	case Postgres15:
		return findPostgres(postgres15Folders()...)
	case Postgres18:
		return findPostgres(filepath.Join(enginesDir(), "postgres18/native/bin"))
	case MariaDB:
		return findMariaDB()
	case SQLServer:
		_, err := lentServer("")
		return programs{}, err
	case MySQL:
		folder := filepath.Join(enginesDir(), "mysql")
		p := programs{server: filepath.Join(folder, "mysqld"), data: filepath.Join(folder, "data")}
		if !exists(p.server) || !exists(p.data) {
			return programs{}, errors.New("mysqld not found")
		}
		return p, nil
	}
	return programs{}, fmt.Errorf("testdb: there is no engine %q", e.Name)
}

// enginesDir returns the folder into which scripts/setup.sh unpacks servers.
func enginesDir() string {
	if dir := os.Getenv("ROWFEED_ENGINES_DIR"); dir != "" {
		return dir
	}
	// go test starts a test in its package's folder, below go.work.
	dir, err := os.Getwd()
	for err == nil && !exists(filepath.Join(dir, "go.work")) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	dir = filepath.Join(dir, ".engines")
	// scripts/setup.sh makes it a link if servers may not enter the checkout.
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		return target
	}
	return dir
}

// postgres15Folders are the folders that may have PostgreSQL 15: the distribution's, if that is a 15, and the npm
// package's.
func postgres15Folders() []string {
	var folders []string
	if out, err := exec.Command("pg_config", "--version", "--bindir").Output(); err == nil {
		// pg_config prints one answer per line, in an order of its own.
		var bindir string
		is15 := false
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(line)
			is15 = is15 || strings.HasPrefix(line, "PostgreSQL 15.")
			if filepath.IsAbs(line) {
				bindir = line
			}
		}
		if is15 && bindir != "" {
			folders = append(folders, bindir)
		}
	}
	return append(folders, "/usr/lib/postgresql/15/bin", filepath.Join(enginesDir(), "postgres15/native/bin"))
}

func findPostgres(folders ...string) (programs, error) {
	for _, folder := range folders {
		p := programs{server: filepath.Join(folder, "postgres"), install: filepath.Join(folder, "initdb")}
		if exists(p.server) && exists(p.install) {
			if dump := filepath.Join(folder, "pg_dump"); exists(dump) {
				p.dump = dump
			}
			return p, nil
		}
	}
	return programs{}, fmt.Errorf("no postgres in %s", strings.Join(folders, ", "))
}

func findMariaDB() (programs, error) {
	var p programs
	for _, f := range []struct {
		path *string
		name string
	}{{&p.server, "mariadbd"}, {&p.install, "mariadb-install-db"}, {&p.dump, "mariadb-dump"}} {
		path, err := exec.LookPath(f.name)
		if err != nil { // Debian keeps servers outside of PATH
			path = filepath.Join("/usr/sbin", f.name)
		}
		if !exists(path) {
			return programs{}, fmt.Errorf("%s not found", f.name)
		}
		*f.path = path
	}
	return p, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
