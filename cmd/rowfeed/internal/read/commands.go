package read

import (
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands fetch and tail.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{newFetch(a), newTail(a)}
}
