package testdb

import (
	"path/filepath"
	"strconv"
	"strings"
)

// mysqlInit runs when MySQL starts. A new data folder only has root@localhost, which does not match a connection to
// 127.0.0.1 without name resolution.
const mysqlInit = `CREATE USER IF NOT EXISTS 'root'@'127.0.0.1';
GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
GRANT PROXY ON ''@'' TO 'root'@'127.0.0.1' WITH GRANT OPTION;
`

// mysqlArguments are the arguments of MariaDB and MySQL. innodb_flush_log_at_trx_commit keeps its default of 1, because
// rowfeed refuses less. The flush itself is skipped, which clients cannot see.
func (s *Server) mysqlArguments() []string {
	arguments := []string{
		"--no-defaults", // must be the first
		"--datadir=" + s.data,
		"--port=" + strconv.Itoa(s.Port),
		"--bind-address=127.0.0.1",
		"--socket=" + filepath.Join(s.folder, "s"),
		"--pid-file=" + filepath.Join(s.folder, "pid"),
		"--skip-name-resolve",
		"--max-connections=300",
		"--character-set-server=utf8mb4",
		"--innodb-buffer-pool-size=64M",
		"--default-time-zone=+00:00",
	}
	binlog := false
	for _, setting := range s.options.settings {
		name := strings.ReplaceAll(setting, "-", "_")
		binlog = binlog || strings.HasPrefix(name, "log_bin")
	}
	if !binlog {
		arguments = append(arguments, "--skip-log-bin")
	}
	if !s.options.durable {
		arguments = append(arguments, "--innodb-flush-method=nosync")
	}
	if s.Engine == MySQL {
		arguments = append(arguments, "--mysqlx=OFF", "--init-file="+filepath.Join(s.folder, "init.sql"),
			"--innodb-redo-log-capacity=32M")
	} else {
		arguments = append(arguments, "--innodb-log-file-size=32M")
	}
	for _, setting := range s.options.settings {
		arguments = append(arguments, "--"+setting)
	}
	return arguments
}
