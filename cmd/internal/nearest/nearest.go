// Package nearest finds the name that a user probably meant.
package nearest

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Name returns the name that is most similar to wrong: it differs only in case, or in at most a third of its letters.
// It returns "" if no name is similar.
func Name(wrong string, names []string) (found string) {
	least := len([]rune(wrong))/3 + 1
	for _, name := range names {
		if d := levenshtein.ComputeDistance(strings.ToLower(wrong), strings.ToLower(name)); d < least && name != wrong {
			found, least = name, d
		}
	}
	return found
}
