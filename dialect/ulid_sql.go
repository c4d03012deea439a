package dialect

import (
	"strconv"

	"github.com/rowfeed/rowfeed/feedtype"
)

// ULIDTerms are the SQL of what [ULIDState.Take] works on: literals, or names of variables.
type ULIDTerms struct {
	TimeMillis, High, Low string // the state
	Hint                  string // in milliseconds of Unix time, at least 1
	Random16, Random64    string // random bits: 0 to 65535, and any bigint
	Count                 string
}

// TakeULIDs is [ULIDState.Take] in SQL: expressions for the state of the first ULID taken.
// The state behind them has Count added to its Low. signed makes a bigint of bits, on
// databases where they are an unsigned one.
func TakeULIDs(t ULIDTerms, signed func(bits string) string) (timeMillis, high, low string) {
	const most = "9223372036854775807"
	later := t.Hint + " > " + t.TimeMillis
	full := signed("("+t.Low+" & "+most+")") + " > " + most + " - " + t.Count
	timeMillis = "CASE WHEN " + later + " THEN " + t.Hint + " WHEN " + full + " THEN " + t.TimeMillis + " + 1 ELSE " + t.TimeMillis + " END"
	fresh := "CASE WHEN " + later + " OR " + full + " THEN "
	// A shift wraps where a product would be out of range: beyond the year 6429 the number is negative.
	high = fresh + signed("(("+timeMillis+") << 16)") + " + " + t.Random16 + " ELSE " + t.High + " END"
	low = fresh + signed("("+t.Random64+" & "+strconv.Itoa(^(1<<62))+")") + " ELSE " + t.Low + " END"
	return timeMillis, high, low
}

// LockRoutine is the name of the feed's function or procedure that takes ULIDs, for writers that do
// not use this library.
func (f *Feed) LockRoutine() feedtype.TableName { return f.Names.Table("lock_" + f.Name) }

// ULIDRoutine is the name of the one that makes ULIDs of what was taken.
func (f *Feed) ULIDRoutine() feedtype.TableName { return f.Names.Table("ulid_" + f.Name) }

// TakeRoutine is the name of the procedure that takes ULIDs for this library, on databases
// where it is not LockRoutine.
func (f *Feed) TakeRoutine() feedtype.TableName { return f.Names.Table("take_" + f.Name) }

// WitnessRoutine is the name of the procedure behind [ULID.Witness], where writers may not read
// the table of shards.
func (f *Feed) WitnessRoutine() feedtype.TableName { return f.Names.Table("witness_" + f.Name) }

// RoutineMissing and RoutineDiffers are what is wrong with a function or procedure.
func RoutineMissing(kind, name string) string { return kind + " " + name + " is missing" }

// RoutineDiffers is described at RoutineMissing.
func RoutineDiffers(kind, name string) string {
	return kind + " " + name + " is not as this rowfeed makes it"
}
