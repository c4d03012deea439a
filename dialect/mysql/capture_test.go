package mysql_test

import (
	"testing"
)

// Every way to write a row ends in a change of its key.
func TestTriggersSeeEveryStatement(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE kv (id int PRIMARY KEY, k varchar(20) NOT NULL UNIQUE, v varchar(20))")
		h.sql("INSERT INTO kv VALUES (1, 'a', 'before'), (2, 'b', 'before')")
		db := h.open()
		f := h.add(db, "kv")
		at := h.expect(f, "", `1 upsert {"id":1} {"id":1,"k":"a","v":"before"}`, `2 upsert {"id":2} {"id":2,"k":"b","v":"before"}`)
		h.sql("REPLACE INTO kv VALUES (3, 'a', 'replaced')") // deletes 1
		at = h.expect(f, at, `3 delete {"id":1}`, `4 upsert {"id":3} {"id":3,"k":"a","v":"replaced"}`)
		h.sql("INSERT INTO kv VALUES (9, 'b', 'x') ON DUPLICATE KEY UPDATE v = 'merged'")
		at = h.expect(f, at, `5 upsert {"id":2} {"id":2,"k":"b","v":"merged"}`)
		h.sql("INSERT IGNORE INTO kv VALUES (2, 'z', 'ignored'), (4, 'c', 'new')")
		at = h.expect(f, at, `6 upsert {"id":4} {"id":4,"k":"c","v":"new"}`)
		h.sql("UPDATE kv SET id = 5 WHERE id = 4") // a changed key records both
		at = h.expect(f, at, `7 delete {"id":4}`, `8 upsert {"id":5} {"id":5,"k":"c","v":"new"}`)
		h.sql("UPDATE kv SET id = id + 10 ORDER BY id DESC")
		at = h.expect(f, at, `9 delete {"id":5}`, `10 upsert {"id":15} {"id":15,"k":"c","v":"new"}`, `11 delete {"id":3}`,
			`12 upsert {"id":13} {"id":13,"k":"a","v":"replaced"}`, `13 delete {"id":2}`, `14 upsert {"id":12} {"id":12,"k":"b","v":"merged"}`)
		h.sql("UPDATE kv SET v = v WHERE id = 15")
		h.sql("DELETE FROM kv WHERE id = 13")
		h.sql("ALTER TABLE kv ADD COLUMN late int")
		h.sql("UPDATE kv SET late = 1 WHERE id = 12")
		h.expect(f, at, `15 upsert {"id":15} {"id":15,"k":"c","v":"new","late":null}`, `16 delete {"id":13}`,
			`17 upsert {"id":12} {"id":12,"k":"b","v":"merged","late":1}`)
	})
}
