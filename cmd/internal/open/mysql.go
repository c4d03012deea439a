package open

import (
	"database/sql/driver"
	"net"
	"net/url"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/rowfeed/rowfeed/dialect/mysql"
)

const (
	// mysqlWaitTimeout makes the server end a session that is silent for so many seconds, also inside a transaction.
	// Otherwise a process that was stopped in a transaction would keep its locks forever. Publishers lower it further.
	mysqlWaitTimeout = "60"
	// mysqlIdle is shorter than mysqlWaitTimeout, so that the pool never uses a connection that the server has ended.
	mysqlIdle = 30 * time.Second
)

func parseMySQL(rawURL string) (*database, error) {
	config, err := mysqlConfig(rawURL)
	if err != nil {
		return nil, err
	}
	return &database{
		dialect: mysql.New(),
		where:   config.Addr,
		connect: func() (driver.Connector, error) {
			connector, err := mysqldriver.NewConnector(config)
			return answering{connector, config.Timeout}, err
		},
		connections: serverConnections,
		idle:        mysqlIdle,
	}, nil
}

func mysqlConfig(rawURL string) (*mysqldriver.Config, error) {
	if err := checkAuthority(rawURL); err != nil {
		return nil, err
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, malformed(rawURL, "it cannot be read")
	}
	name := strings.TrimPrefix(u.Path, "/")
	if name == "" {
		return nil, malformed(rawURL, "it names no database")
	}
	query := u.Query()
	socket := query.Get("socket")
	var parameters []string
	for _, p := range strings.Split(u.RawQuery, "&") {
		if p != "" && !strings.HasPrefix(p, "socket=") {
			parameters = append(parameters, p)
		}
	}
	config, err := mysqldriver.ParseDSN("/?" + strings.Join(parameters, "&"))
	if err != nil {
		e := malformed(rawURL, "its parameters cannot be used")
		e.Err = Scrub(rawURL, err)
		return nil, e
	}
	config.DBName = name
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr = "tcp", net.JoinHostPort(orDefault(u.Hostname(), "127.0.0.1"), orDefault(u.Port(), "3306"))
	if socket != "" {
		config.Net, config.Addr = "unix", socket
	}
	config.ParseTime = false // values are read as text, see dialect.Kind
	config.Logger = &mysqldriver.NopLogger{}
	if !query.Has("timeout") {
		config.Timeout = connectTimeout
	}
	if !query.Has("charset") {
		if err := config.Apply(mysqldriver.Charset("utf8mb4", config.Collation)); err != nil {
			return nil, malformed(rawURL, "its collation cannot be used")
		}
	}
	if !query.Has("connectionAttributes") {
		config.ConnectionAttributes = "program_name:rowfeed"
	}
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	for name, value := range map[string]string{
		"wait_timeout": mysqlWaitTimeout,
		// Bounds the wait for the metadata lock of a table that ALTER TABLE has locked. The default is a day or more.
		"lock_wait_timeout": "5",
		"autocommit":        "1",                    // rowfeed begins transactions explicitly
		"sql_select_limit":  "18446744073709551615", // no limit: a list of triggers must not be cut short
		// A page must not be refused because of the planner's estimate, if max_join_size is set.
		"sql_big_selects":  "1",
		"sql_safe_updates": "0", // rows are updated by a join with a list of their keys
		// Override the server's mode: no value may be read, compared or truncated in another way.
		"sql_mode": "'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'",
	} {
		if _, given := config.Params[name]; !given {
			config.Params[name] = value
		}
	}
	return config, nil
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
