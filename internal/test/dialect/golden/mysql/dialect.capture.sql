-- name: add_column
ADD COLUMN :column :type /*!80023 INVISIBLE */ /*M! INVISIBLE */

-- name: add_columns
ALTER TABLE `items_<feed>` :adds

-- name: batch
CREATE TABLE IF NOT EXISTS `rowfeed_batch_<feed>` (
  seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  `id` bigint NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: batch (composite_key_feed)
CREATE TABLE IF NOT EXISTS `rowfeed_batch_<feed>` (
  seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  `key_kind` text NOT NULL,
  `id` bigint NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: bucket_index
ALTER TABLE `rowfeed_positions_<feed>` ADD INDEX `bucket` (bucket, feed_sync_id, shard, deleted, hidden, published_at)

-- name: capture_deletes
CREATE TRIGGER :name AFTER DELETE ON :table FOR EACH ROW
INSERT INTO :changes (`id`) VALUES (OLD.`id`)

-- name: capture_deletes (composite_key_feed)
CREATE TRIGGER :name AFTER DELETE ON :table FOR EACH ROW
INSERT INTO :changes (`key_kind`, `id`) VALUES (OLD.`kind`, OLD.`id`)

-- name: capture_inserts
CREATE TRIGGER :name AFTER INSERT ON :table FOR EACH ROW
INSERT INTO :changes (`id`) VALUES (NEW.`id`)

-- name: capture_inserts (composite_key_feed)
CREATE TRIGGER :name AFTER INSERT ON :table FOR EACH ROW
INSERT INTO :changes (`key_kind`, `id`) VALUES (NEW.`kind`, NEW.`id`)

-- name: capture_updates
CREATE TRIGGER :name AFTER UPDATE ON :table FOR EACH ROW
BEGIN
  IF NOT (OLD.`id` <=> NEW.`id`) THEN
    INSERT INTO :changes (`id`) VALUES (OLD.`id`);
  END IF;
  INSERT INTO :changes (`id`) VALUES (NEW.`id`);
END

-- name: capture_updates (composite_key_feed)
CREATE TRIGGER :name AFTER UPDATE ON :table FOR EACH ROW
BEGIN
  IF NOT (OLD.`kind` <=> NEW.`kind` AND OLD.`id` <=> NEW.`id`) THEN
    INSERT INTO :changes (`key_kind`, `id`) VALUES (OLD.`kind`, OLD.`id`);
  END IF;
  INSERT INTO :changes (`key_kind`, `id`) VALUES (NEW.`kind`, NEW.`id`);
END

-- name: changes
CREATE TABLE IF NOT EXISTS `rowfeed_changes_<feed>` (
  seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  `id` bigint NOT NULL,
  kind tinyint NOT NULL DEFAULT 0,
  changed_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: changes (composite_key_feed)
CREATE TABLE IF NOT EXISTS `rowfeed_changes_<feed>` (
  seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  `key_kind` text NOT NULL,
  `id` bigint NOT NULL,
  kind tinyint NOT NULL DEFAULT 0,
  changed_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: declare_key
ALTER TABLE :table MODIFY :column

-- name: delete_row
DELETE FROM `items_<feed>` WHERE :key

-- name: drop_batch
DROP TABLE IF EXISTS `rowfeed_batch_<feed>`

-- name: drop_bucket_index
ALTER TABLE `rowfeed_positions_<feed>` DROP INDEX `bucket`

-- name: drop_changes
DROP TABLE IF EXISTS `rowfeed_changes_<feed>`

-- name: drop_closed
DROP TABLE IF EXISTS `rowfeed_closed_<feed>`

-- name: drop_left_trigger
DROP TRIGGER IF EXISTS :name

-- name: drop_outbox
DROP TABLE IF EXISTS `rowfeed_outbox_<feed>`

-- name: drop_own
ALTER TABLE `items_<feed>` :drops

-- name: drop_places
DROP TABLE IF EXISTS `rowfeed_feed_<feed>`

-- name: drop_positions
DROP TABLE IF EXISTS `rowfeed_positions_<feed>`

-- name: drop_rest_of_index
ALTER TABLE `items_<feed>` DROP INDEX `rowfeed_<feed>_row_position`

-- name: drop_stale_trigger
DROP TRIGGER IF EXISTS :name

-- name: drop_trigger
DROP TRIGGER IF EXISTS :name

-- name: fence
IF NOT (@rowfeed_publisher <=> :feed) THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = :text;
    ELSEIF (SELECT max(seq) FROM :changes) IS NULL THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = :text;
    END IF;

-- name: fence_inserts
CREATE TRIGGER :name AFTER INSERT ON :table FOR EACH ROW
BEGIN
  IF NEW.feed_sync_id IS NOT NULL THEN
    IF NOT (@rowfeed_publisher <=> :feed) THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = :text;
    ELSEIF (SELECT max(seq) FROM :changes) IS NULL THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = :text;
    END IF;
  END IF;
END

-- name: fence_updates
CREATE TRIGGER :name AFTER UPDATE ON :table FOR EACH ROW
BEGIN
  IF NEW.feed_sync_id IS NOT NULL AND NOT (NEW.feed_sync_id <=> OLD.feed_sync_id) THEN
    IF NOT (@rowfeed_publisher <=> :feed) THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = :text;
    ELSEIF (SELECT max(seq) FROM :changes) IS NULL THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = :text;
    END IF;
  END IF;
END

-- name: key_mode
SET SESSION sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES'

-- name: made_as
SHOW CREATE :kind :name

-- name: options
ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: outbox
CREATE TABLE IF NOT EXISTS `rowfeed_outbox_<feed>` (
  order_sequence bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  shard bigint NOT NULL DEFAULT 0,
  time_hint bigint NULL,
  appended_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  `id` bigint NOT NULL,
  KEY shard (shard, order_sequence)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: outbox (composite_key_feed)
CREATE TABLE IF NOT EXISTS `rowfeed_outbox_<feed>` (
  order_sequence bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  shard bigint NOT NULL DEFAULT 0,
  time_hint bigint NULL,
  appended_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  `key_kind` text NOT NULL,
  `id` bigint NOT NULL,
  KEY shard (shard, order_sequence)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: places
CREATE TABLE IF NOT EXISTS `rowfeed_feed_<feed>` (
  shard bigint NOT NULL,
  ulid binary(16) NOT NULL,
  `id` bigint NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY place (shard, ulid)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: places (composite_key_feed)
CREATE TABLE IF NOT EXISTS `rowfeed_feed_<feed>` (
  shard bigint NOT NULL,
  ulid binary(16) NOT NULL,
  `key_kind` text NOT NULL,
  `id` bigint NOT NULL,
  PRIMARY KEY (`key_kind`, `id`),
  UNIQUE KEY place (shard, ulid)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: positions
CREATE TABLE IF NOT EXISTS `rowfeed_positions_<feed>` (
  `id` bigint NOT NULL,
  feed_sync_id bigint NOT NULL,
  shard int NOT NULL,
  bucket int NOT NULL,
  deleted tinyint NOT NULL,
  hidden tinyint NOT NULL,
  published_at bigint NOT NULL,
  PRIMARY KEY (`id`),
  KEY feed_sync_id (feed_sync_id, shard, deleted, hidden, published_at),
  KEY deleted (deleted)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: positions (composite_key_feed)
CREATE TABLE IF NOT EXISTS `rowfeed_positions_<feed>` (
  `key_kind` text NOT NULL,
  `id` bigint NOT NULL,
  feed_sync_id bigint NOT NULL,
  shard int NOT NULL,
  bucket int NOT NULL,
  deleted tinyint NOT NULL,
  hidden tinyint NOT NULL,
  published_at bigint NOT NULL,
  PRIMARY KEY (`key_kind`, `id`),
  KEY feed_sync_id (feed_sync_id, shard, deleted, hidden, published_at),
  KEY deleted (deleted)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: positions (sharded_feed)
CREATE TABLE IF NOT EXISTS `rowfeed_positions_<feed>` (
  `key_kind` text NOT NULL,
  `id` bigint NOT NULL,
  feed_sync_id bigint NOT NULL,
  shard int NOT NULL,
  bucket int NOT NULL,
  deleted tinyint NOT NULL,
  hidden tinyint NOT NULL,
  published_at bigint NOT NULL,
  PRIMARY KEY (`key_kind`, `id`),
  KEY feed_sync_id (feed_sync_id, shard, deleted, hidden, published_at),
  KEY deleted (deleted),
  KEY bucket (bucket, feed_sync_id, shard, deleted, hidden, published_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: record_delete
INSERT INTO `rowfeed_changes_<feed>` (`id`) VALUES (:key)

-- name: record_delete (composite_key_feed)
INSERT INTO `rowfeed_changes_<feed>` (`key_kind`, `id`) VALUES (:key)

-- name: record_inserts
CREATE TRIGGER :name AFTER INSERT ON :table FOR EACH ROW
INSERT INTO :changes (shard, `id`) VALUES (:shard, NEW.`id`)

-- name: record_inserts (composite_key_feed)
CREATE TRIGGER :name AFTER INSERT ON :table FOR EACH ROW
INSERT INTO :changes (shard, `key_kind`, `id`) VALUES (:shard, NEW.`kind`, NEW.`id`)

-- name: record_updates
CREATE TRIGGER :name AFTER UPDATE ON :table FOR EACH ROW
BEGIN
  IF NOT (OLD.`id` <=> NEW.`id`) THEN
    INSERT INTO :changes (shard, `id`) VALUES (:shard, NEW.`id`);
  END IF;
END

-- name: record_updates (composite_key_feed)
CREATE TRIGGER :name AFTER UPDATE ON :table FOR EACH ROW
BEGIN
  IF NOT (OLD.`kind` <=> NEW.`kind` AND OLD.`id` <=> NEW.`id`) THEN
    INSERT INTO :changes (shard, `key_kind`, `id`) VALUES (:shard, NEW.`kind`, NEW.`id`);
  END IF;
END

-- name: row_index
ALTER TABLE `items_<feed>` ADD INDEX `rowfeed_<feed>_row_position` (:columns)

-- name: strays
SELECT TRIGGER_SCHEMA, TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS
WHERE CAST(TRIM(ACTION_STATEMENT) AS CHAR) IN (:bodies) AND TRIGGER_SCHEMA <> :schema ORDER BY 1, 2

-- name: triggers
SELECT EVENT_OBJECT_TABLE, TRIGGER_NAME, EVENT_MANIPULATION, ACTION_TIMING, ACTION_STATEMENT, DEFINER
FROM information_schema.TRIGGERS
WHERE TRIGGER_SCHEMA = :schema AND (EVENT_OBJECT_TABLE = :table OR TRIGGER_NAME IN (:names))
ORDER BY TRIGGER_NAME LIMIT 18446744073709551615

-- name: use
USE :database

