package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// secondsVariable asks for a long campaign.
const secondsVariable = "ROWFEED_FAULTS_SECONDS"

func TestMain(m *testing.M) {
	// The real binary runs in children of testdb, which die with this process.
	testdb.RegisterChild("program", func() {
		var args []string
		err := json.Unmarshal([]byte(os.Getenv("PROGRAM")), &args)
		if err == nil {
			err = syscall.Exec(args[0], args, os.Environ())
		}
		fmt.Println(err)
		os.Exit(1)
	})
	setDefault("ROWFEED_TEST_ENGINES",
		map[bool]string{false: "postgres15", true: "postgres15,mariadb"}[os.Getenv(secondsVariable) != ""])
	testdb.Main(m)
}

func setDefault(variable, value string) {
	if os.Getenv(variable) == "" {
		_ = os.Setenv(variable, value)
	}
}

// number reads a setting from the environment.
func number(t testing.TB, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
