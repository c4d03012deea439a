PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100));
INSERT INTO kv VALUES(1,'a');
INSERT INTO kv VALUES(2,'b');
INSERT INTO kv VALUES(4,'d');
INSERT INTO kv VALUES(5,'E');
INSERT INTO kv VALUES(6,'f');
INSERT INTO kv VALUES(7,'g');
INSERT INTO kv VALUES(8,NULL);
INSERT INTO kv VALUES(9,'');
INSERT INTO kv VALUES(10,'ü');
INSERT INTO kv VALUES(11,'k');
INSERT INTO kv VALUES(12,'l');
CREATE TABLE ev (customer INT NOT NULL, id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100));
INSERT INTO ev VALUES(1,1,'a');
INSERT INTO ev VALUES(1,2,'b');
INSERT INTO ev VALUES(2,3,'c');
INSERT INTO ev VALUES(2,4,'d');
CREATE TABLE IF NOT EXISTS "rowfeed_schema_version" (
  version INTEGER PRIMARY KEY,
  applied_at INTEGER NOT NULL
);
INSERT INTO rowfeed_schema_version VALUES(1,1795399476921000);
INSERT INTO rowfeed_schema_version VALUES(2,1795399476921000);
INSERT INTO rowfeed_schema_version VALUES(3,1795399476921000);
INSERT INTO rowfeed_schema_version VALUES(4,1795399476923000);
INSERT INTO rowfeed_schema_version VALUES(5,1795399476925000);
INSERT INTO rowfeed_schema_version VALUES(6,1795399476926000);
INSERT INTO rowfeed_schema_version VALUES(7,1795399476928000);
CREATE TABLE IF NOT EXISTS "rowfeed_sequences" (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL,
  version INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
INSERT INTO rowfeed_sequences VALUES('kv',13,2,1795399479062000);
INSERT INTO rowfeed_sequences VALUES('ev',0,0,1795399479119000);
CREATE TABLE IF NOT EXISTS "rowfeed_feeds" (
  name TEXT NOT NULL PRIMARY KEY,
  mode TEXT NOT NULL,
  capture TEXT NOT NULL,
  state TEXT NOT NULL,
  generation INTEGER NOT NULL,
  source_schema TEXT,
  source_table TEXT NOT NULL,
  key_columns TEXT NOT NULL,
  delivered_columns TEXT,
  options TEXT NOT NULL,
  data_shards INTEGER NOT NULL,
  shard_column TEXT,
  tombstones_seconds INTEGER NOT NULL,
  tombstones_below INTEGER NOT NULL,
  database_identity TEXT,
  fill_after TEXT,
  created_at INTEGER NOT NULL
);
INSERT INTO rowfeed_feeds VALUES('kv','sequence','trigger','active',1,NULL,'kv','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true}',8,NULL,2592000,0,NULL,NULL,1795399477004000);
INSERT INTO rowfeed_feeds VALUES('ev','outbox','trigger','active',1,NULL,'ev','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true,"ulids":{"Position":{"name":"ulid","type":"BLOB","decl":"BLOB","kind":"binary"},"Shard":{"name":"shard","type":"bigint","kind":"integer"},"Index":"place"},"runs":1}',1,'customer',0,0,NULL,NULL,1795399479119000);
CREATE TABLE IF NOT EXISTS "rowfeed_cursors" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  shard_count INTEGER NOT NULL,
  value TEXT NOT NULL,
  generation INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  version INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  aside INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL, failure TEXT,
  PRIMARY KEY (consumer, feed, shard)
);
INSERT INTO rowfeed_cursors VALUES('lines','kv',0,1,'10',1,1,4,0,0,1795399477173000,NULL);
INSERT INTO rowfeed_cursors VALUES('hook','kv',0,1,'10',1,1,6,0,1,1795399479030000,NULL);
INSERT INTO rowfeed_cursors VALUES('evlines','ev',1,1,'01M832BVW5SSHTENFZJ5V5A3D2',1,1,2,0,0,1795399479237000,NULL);
INSERT INTO rowfeed_cursors VALUES('evlines','ev',2,1,'01M832BVW9C8E2Z1GACDRN51W1',1,1,2,0,0,1795399479244000,NULL);
CREATE TABLE IF NOT EXISTS "rowfeed_dead_letters" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  key_digest TEXT NOT NULL,
  key_json TEXT NOT NULL,
  generation INTEGER NOT NULL,
  position TEXT NOT NULL,
  op TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  collapsed INTEGER NOT NULL,
  error TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL, data_shard INTEGER,
  PRIMARY KEY (consumer, feed, shard, key_digest)
);
INSERT INTO rowfeed_dead_letters VALUES('hook','kv',0,'fe94ccbd074bb18b213f513152e3e3d0503e3746292df1d92bdd30aa4aaaee76','{"id":4}',1,'4','upsert','aside',5,0,'the endpoint answered 422 Unprocessable Entity',1795399479022000,1795399479022000,0);
CREATE TABLE IF NOT EXISTS "rowfeed_processed" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  generation INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  position TEXT NOT NULL,
  processed_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "rowfeed_leases" (
  name TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  expires_at INTEGER,
  acquired_at INTEGER NOT NULL,
  renewals INTEGER NOT NULL
);
INSERT INTO rowfeed_leases VALUES('relay:kv:lines','',1,NULL,1795399477142000,1);
INSERT INTO rowfeed_leases VALUES('relay:kv:hook','',1,NULL,1795399477211000,1);
INSERT INTO rowfeed_leases VALUES('relay:ev:evlines','',1,NULL,1795399479218000,1);
CREATE TABLE IF NOT EXISTS "rowfeed_shards" (
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  time_ms INTEGER NOT NULL,
  ulid_high INTEGER NOT NULL,
  ulid_low INTEGER NOT NULL,
  below_high INTEGER NOT NULL DEFAULT 0,
  below_low INTEGER NOT NULL DEFAULT 0,
  witness TEXT NOT NULL,
  live_from INTEGER NOT NULL DEFAULT 0,
  filled_by INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard)
);
INSERT INTO rowfeed_shards VALUES('ev',1,1795399479173,117663300267134563,-6388919496134554205,0,0,'',1795399479173,0);
INSERT INTO rowfeed_shards VALUES('ev',2,1795399479177,117663300267368988,3424435988881115010,0,0,'',1795399479177,0);
CREATE TABLE IF NOT EXISTS "rowfeed_consumers" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard_count INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed)
);
INSERT INTO rowfeed_consumers VALUES('evlines','ev',1,0,3);
CREATE TABLE IF NOT EXISTS "rowfeed_changes_kv" (
  seq INTEGER PRIMARY KEY,
  "id" BIGINT NOT NULL COLLATE "BINARY",
  kind INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
);
INSERT INTO rowfeed_changes_kv VALUES(1,12,0,1795399479100000);
CREATE TABLE IF NOT EXISTS "rowfeed_positions_kv" (
  "id" BIGINT NOT NULL COLLATE "BINARY",
  feed_sync_id INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  PRIMARY KEY ("id")
) WITHOUT ROWID;
INSERT INTO rowfeed_positions_kv VALUES(1,1,7,7,0,0,1795399477066000);
INSERT INTO rowfeed_positions_kv VALUES(2,2,5,5,0,0,1795399477066000);
INSERT INTO rowfeed_positions_kv VALUES(3,11,3,3,1,0,1795399479062000);
INSERT INTO rowfeed_positions_kv VALUES(4,4,0,0,0,0,1795399477066000);
INSERT INTO rowfeed_positions_kv VALUES(5,12,6,6,0,0,1795399479062000);
INSERT INTO rowfeed_positions_kv VALUES(6,6,4,4,0,0,1795399477066000);
INSERT INTO rowfeed_positions_kv VALUES(7,7,2,2,0,0,1795399477066000);
INSERT INTO rowfeed_positions_kv VALUES(8,8,3,3,0,0,1795399477066000);
INSERT INTO rowfeed_positions_kv VALUES(9,9,5,5,0,0,1795399477066000);
INSERT INTO rowfeed_positions_kv VALUES(10,10,1,1,0,0,1795399477066000);
INSERT INTO rowfeed_positions_kv VALUES(11,13,7,7,0,0,1795399479062000);
CREATE TABLE IF NOT EXISTS "rowfeed_outbox_ev" (
  order_sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  shard INTEGER NOT NULL DEFAULT 0 CHECK (typeof(shard) = 'integer'),
  time_hint INTEGER CHECK (typeof(time_hint) IN ('integer', 'null')),
  appended_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
  "id" BIGINT NOT NULL COLLATE "BINARY"
);
INSERT INTO rowfeed_outbox_ev VALUES(4,2,NULL,1795399479273000,4);
CREATE TABLE IF NOT EXISTS "rowfeed_feed_ev" (
  shard INTEGER NOT NULL,
  ulid BLOB NOT NULL,
  "id" BIGINT NOT NULL COLLATE "BINARY",
  PRIMARY KEY (shard, ulid),
  UNIQUE ("id")
) WITHOUT ROWID;
INSERT INTO rowfeed_feed_ev VALUES(1,X'01a20625ef85ce63a755ff9176550da1',1);
INSERT INTO rowfeed_feed_ev VALUES(1,X'01a20625ef85ce63a755ff9176550da2',2);
INSERT INTO rowfeed_feed_ev VALUES(2,X'01a20625ef89621c2f860a6371528781',3);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('rowfeed_outbox_ev',4);
CREATE UNIQUE INDEX "rowfeed_kv_position" ON "rowfeed_positions_kv" (feed_sync_id);
CREATE INDEX "rowfeed_kv_deleted" ON "rowfeed_positions_kv" (feed_sync_id) WHERE deleted = 1;
CREATE INDEX "rowfeed_kv_bucket" ON "rowfeed_positions_kv" (bucket, feed_sync_id, shard, deleted, hidden);
CREATE TRIGGER "rowfeed_kv_insert" AFTER INSERT ON "kv"
BEGIN
  INSERT INTO "rowfeed_changes_kv" ("id") VALUES (NEW."id");
END;
CREATE TRIGGER "rowfeed_kv_update" AFTER UPDATE ON "kv"
BEGIN
  INSERT INTO "rowfeed_changes_kv" ("id") SELECT OLD."id" WHERE OLD."id" COLLATE "BINARY" IS NOT NEW."id";
  INSERT INTO "rowfeed_changes_kv" ("id") VALUES (NEW."id");
END;
CREATE TRIGGER "rowfeed_kv_delete" AFTER DELETE ON "kv"
BEGIN
  INSERT INTO "rowfeed_changes_kv" ("id") VALUES (OLD."id");
END;
CREATE TRIGGER "rowfeed_kv_insert_replace" BEFORE INSERT ON "kv"
BEGIN
  INSERT INTO "rowfeed_changes_kv" ("id") SELECT r."id" FROM "kv" r WHERE r.rowid = NEW.rowid;
END;
CREATE TRIGGER "rowfeed_kv_update_replace" BEFORE UPDATE ON "kv"
BEGIN
  INSERT INTO "rowfeed_changes_kv" ("id") SELECT r."id" FROM "kv" r WHERE r.rowid = NEW.rowid AND NOT (r."id" COLLATE "BINARY" IS OLD."id");
END;
CREATE INDEX "rowfeed_ev_outbox" ON "rowfeed_outbox_ev" (shard, order_sequence);
CREATE TRIGGER "rowfeed_ev_insert" AFTER INSERT ON "ev"
BEGIN
  INSERT INTO "rowfeed_outbox_ev" (shard, "id") VALUES (CASE typeof(NEW."customer") WHEN 'integer' THEN NEW."customer" ELSE RAISE(ABORT, 'rowfeed: column "customer" of table "ev", a row''s shard in feed "ev", holds no integer') END, NEW."id");
END;
CREATE TRIGGER "rowfeed_ev_update" AFTER UPDATE ON "ev" WHEN OLD."id" COLLATE "BINARY" IS NOT NEW."id"
BEGIN
  INSERT INTO "rowfeed_outbox_ev" (shard, "id") VALUES (CASE typeof(NEW."customer") WHEN 'integer' THEN NEW."customer" ELSE RAISE(ABORT, 'rowfeed: column "customer" of table "ev", a row''s shard in feed "ev", holds no integer') END, NEW."id");
END;
COMMIT;
