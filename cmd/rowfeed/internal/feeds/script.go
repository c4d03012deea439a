package feeds

import (
	"strings"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/dialect"
)

// PrintScript prints the statements of steps, each below its note as a comment.
func PrintScript(a *cli.App, d *dialect.Dialect, steps []dialect.Step) error {
	var b strings.Builder
	for i, step := range steps {
		if i > 0 {
			b.WriteString("\n")
		}
		// A comment of psql ends at either character.
		for line := range strings.SplitSeq(strings.ReplaceAll(step.Note, "\r", "\n"), "\n") {
			b.WriteString("-- " + line + "\n")
		}
		b.WriteString(d.Terminate(step.SQL) + "\n")
	}
	_, err := a.Stdout.Write([]byte(b.String()))
	return err
}
