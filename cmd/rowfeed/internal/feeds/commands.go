package feeds

import (
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands init, migrate, feed, republish and unpublish.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{newInit(a), newMigrate(a), newFeed(a), newRepublish(a), newUnpublish(a)}
}
