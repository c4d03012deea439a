package dialect

import (
	"strconv"

	"github.com/rowfeed/rowfeed/feedtype"
)

// ULIDTerms are the arguments of [ULIDState.Take] in SQL: literals, or names of variables.
type ULIDTerms struct {
	TimeMillis, High, Low string // the state
	Hint                  string // Unix time in milliseconds, at least 1
	Random16, Random64    string // random bits: 0 to 65535, and any bigint
	Count                 string
}

// TakeULIDs is [ULIDState.Take] in SQL. It returns expressions for the state of the first ULID that is taken.
// The state after the ULIDs has Count added to its Low. signed converts the result of a bit operation to a
// signed bigint, on databases where it is unsigned.
func TakeULIDs(t ULIDTerms, signed func(bits string) string) (timeMillis, high, low string) {
	const most = "9223372036854775807"
	later := t.Hint + " > " + t.TimeMillis
	full := signed("("+t.Low+" & "+most+")") + " > " + most + " - " + t.Count
	timeMillis = "CASE WHEN " + later + " THEN " + t.Hint + " WHEN " + full + " THEN " + t.TimeMillis + " + 1 ELSE " +
		t.TimeMillis + " END"
	fresh := "CASE WHEN " + later + " OR " + full + " THEN "
	// A shift wraps where a product would be out of range: from the year 6429 on the number is negative.
	high = fresh + signed("(("+timeMillis+") << 16)") + " + " + t.Random16 + " ELSE " + t.High + " END"
	low = fresh + signed("("+t.Random64+" & "+strconv.Itoa(^(1<<62))+")") + " ELSE " + t.Low + " END"
	return timeMillis, high, low
}

// LockRoutine is the name of the feed's function or procedure with which writers without this library take
// ULIDs.
func (f *Feed) LockRoutine() feedtype.TableName { return f.Names.Table("lock_" + f.Name) }

// ULIDRoutine is the name of the feed's function that computes one of the ULIDs that were taken.
func (f *Feed) ULIDRoutine() feedtype.TableName { return f.Names.Table("ulid_" + f.Name) }

// TakeRoutine is the name of the procedure with which this library takes ULIDs, on databases where it does not
// call LockRoutine.
func (f *Feed) TakeRoutine() feedtype.TableName { return f.Names.Table("take_" + f.Name) }

// NonceRoutine is the name of the procedure behind [Locks].LockNonces, on databases where writers may not read
// the table of shards.
func (f *Feed) NonceRoutine() feedtype.TableName { return f.Names.Table("witness_" + f.Name) }

// RoutineMissing says that a function or procedure is missing.
func RoutineMissing(kind, name string) string { return kind + " " + name + " is missing" }

// RoutineDiffers says that a function or procedure differs from the one that rowfeed makes.
func RoutineDiffers(kind, name string) string {
	return kind + " " + name + " is not as this rowfeed makes it"
}
