/*M!999999\- enable the sandbox mode */ 

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;
DROP TABLE IF EXISTS `ev`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `ev` (
  `customer` int(11) NOT NULL,
  `id` bigint(20) NOT NULL,
  `v` varchar(100) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `ev` WRITE;
/*!40000 ALTER TABLE `ev` DISABLE KEYS */;
INSERT INTO `ev` VALUES (1,1,'a');
INSERT INTO `ev` VALUES (1,2,'b');
INSERT INTO `ev` VALUES (2,3,'c');
INSERT INTO `ev` VALUES (2,4,'d');
/*!40000 ALTER TABLE `ev` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_ev_insert` AFTER INSERT ON `ev` FOR EACH ROW
INSERT INTO `rowfeed_outbox_ev` (shard, `id`) VALUES (NEW.`customer`, NEW.`id`) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_ev_update` AFTER UPDATE ON `ev` FOR EACH ROW
BEGIN
  IF NOT (OLD.`id` <=> NEW.`id`) THEN
    INSERT INTO `rowfeed_outbox_ev` (shard, `id`) VALUES (NEW.`customer`, NEW.`id`);
  END IF;
END */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
DROP TABLE IF EXISTS `kv`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `kv` (
  `id` bigint(20) NOT NULL,
  `v` varchar(100) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `kv` WRITE;
/*!40000 ALTER TABLE `kv` DISABLE KEYS */;
INSERT INTO `kv` VALUES (1,'a');
INSERT INTO `kv` VALUES (2,'b');
INSERT INTO `kv` VALUES (4,'d');
INSERT INTO `kv` VALUES (5,'E');
INSERT INTO `kv` VALUES (6,'f');
INSERT INTO `kv` VALUES (7,'g');
INSERT INTO `kv` VALUES (8,NULL);
INSERT INTO `kv` VALUES (9,'');
INSERT INTO `kv` VALUES (10,'√º');
INSERT INTO `kv` VALUES (11,'k');
INSERT INTO `kv` VALUES (12,'l');
/*!40000 ALTER TABLE `kv` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_kv_insert` AFTER INSERT ON `kv` FOR EACH ROW
INSERT INTO `rowfeed_changes_kv` (`id`) VALUES (NEW.`id`) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_kv_update` AFTER UPDATE ON `kv` FOR EACH ROW
BEGIN
  IF NOT (OLD.`id` <=> NEW.`id`) THEN
    INSERT INTO `rowfeed_changes_kv` (`id`) VALUES (OLD.`id`);
  END IF;
  INSERT INTO `rowfeed_changes_kv` (`id`) VALUES (NEW.`id`);
END */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_kv_delete` AFTER DELETE ON `kv` FOR EACH ROW
INSERT INTO `rowfeed_changes_kv` (`id`) VALUES (OLD.`id`) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
DROP TABLE IF EXISTS `rowfeed_changes_kv`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_changes_kv` (
  `seq` bigint(20) NOT NULL AUTO_INCREMENT,
  `id` bigint(20) NOT NULL,
  `kind` tinyint(4) NOT NULL DEFAULT 0,
  `changed_at` timestamp(6) NOT NULL DEFAULT current_timestamp(6),
  PRIMARY KEY (`seq`)
) ENGINE=InnoDB AUTO_INCREMENT=15 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_changes_kv` WRITE;
/*!40000 ALTER TABLE `rowfeed_changes_kv` DISABLE KEYS */;
INSERT INTO `rowfeed_changes_kv` VALUES (14,12,0,'2026-11-23 02:04:42.319976');
/*!40000 ALTER TABLE `rowfeed_changes_kv` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_consumers`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_consumers` (
  `consumer` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `shard_count` int(11) NOT NULL,
  `paused` smallint(6) NOT NULL,
  `version` bigint(20) NOT NULL,
  PRIMARY KEY (`consumer`,`feed`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_consumers` WRITE;
/*!40000 ALTER TABLE `rowfeed_consumers` DISABLE KEYS */;
INSERT INTO `rowfeed_consumers` VALUES ('evlines','ev',1,0,3);
/*!40000 ALTER TABLE `rowfeed_consumers` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_cursors`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_cursors` (
  `consumer` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `shard` bigint(20) NOT NULL,
  `shard_count` int(11) NOT NULL,
  `value` text CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `generation` bigint(20) NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `version` bigint(20) NOT NULL,
  `paused` smallint(6) NOT NULL,
  `aside` bigint(20) NOT NULL DEFAULT 0,
  `updated_at` bigint(20) NOT NULL,
  `failure` longtext DEFAULT NULL,
  PRIMARY KEY (`consumer`,`feed`,`shard`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_cursors` WRITE;
/*!40000 ALTER TABLE `rowfeed_cursors` DISABLE KEYS */;
INSERT INTO `rowfeed_cursors` VALUES ('evlines','ev',1,1,'01M832BZ8TSMERTVNFGP7T6CMR',1,1,2,0,0,1795399483019919,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('evlines','ev',2,1,'01M832BZ9XZ12B3TZ9AV1RGDPB',1,1,2,0,0,1795399483022384,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('hook','kv',0,1,'10',1,1,6,0,1,1795399482198869,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('lines','kv',0,1,'10',1,1,4,0,0,1795399481019358,NULL);
/*!40000 ALTER TABLE `rowfeed_cursors` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_dead_letters`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_dead_letters` (
  `consumer` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `shard` bigint(20) NOT NULL,
  `key_digest` char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `key_json` longtext NOT NULL,
  `generation` bigint(20) NOT NULL,
  `position` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `op` varchar(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `state` varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `attempts` bigint(20) NOT NULL,
  `collapsed` bigint(20) NOT NULL,
  `error` longtext NOT NULL,
  `first_at` bigint(20) NOT NULL,
  `last_at` bigint(20) NOT NULL,
  `data_shard` bigint(20) DEFAULT NULL,
  PRIMARY KEY (`consumer`,`feed`,`shard`,`key_digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_dead_letters` WRITE;
/*!40000 ALTER TABLE `rowfeed_dead_letters` DISABLE KEYS */;
INSERT INTO `rowfeed_dead_letters` VALUES ('hook','kv',0,'fe94ccbd074bb18b213f513152e3e3d0503e3746292df1d92bdd30aa4aaaee76','{\"id\":4}',1,'4','upsert','aside',5,0,'the endpoint answered 422 Unprocessable Entity',1795399482171511,1795399482171511,0);
/*!40000 ALTER TABLE `rowfeed_dead_letters` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_feed_ev`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_feed_ev` (
  `shard` bigint(20) NOT NULL,
  `ulid` binary(16) NOT NULL,
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `place` (`shard`,`ulid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_feed_ev` WRITE;
/*!40000 ALTER TABLE `rowfeed_feed_ev` DISABLE KEYS */;
INSERT INTO `rowfeed_feed_ev` VALUES (1,'¢%˝\ZÕçnØÖè£2ó',1);
INSERT INTO `rowfeed_feed_ev` VALUES (1,'¢%˝\ZÕçnØÖè£2ò',2);
INSERT INTO `rowfeed_feed_ev` VALUES (2,'¢%˝=¯D±ÎÈV√à6À',3);
/*!40000 ALTER TABLE `rowfeed_feed_ev` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_feeds`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_feeds` (
  `name` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `mode` varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `capture` varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `state` varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `generation` bigint(20) NOT NULL,
  `source_schema` varchar(64) DEFAULT NULL,
  `source_table` varchar(64) NOT NULL,
  `key_columns` longtext NOT NULL,
  `delivered_columns` longtext DEFAULT NULL,
  `options` longtext NOT NULL,
  `data_shards` int(11) NOT NULL DEFAULT 1,
  `shard_column` varchar(64) DEFAULT NULL,
  `tombstones_seconds` bigint(20) NOT NULL,
  `tombstones_below` bigint(20) NOT NULL DEFAULT 0,
  `database_identity` varchar(255) DEFAULT NULL,
  `fill_after` longtext DEFAULT NULL,
  `created_at` bigint(20) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_feeds` WRITE;
/*!40000 ALTER TABLE `rowfeed_feeds` DISABLE KEYS */;
INSERT INTO `rowfeed_feeds` VALUES ('ev','outbox','trigger','active',1,'@database@','ev','[{\"name\":\"id\",\"type\":\"bigint(20)\",\"decl\":\"bigint(20)\",\"kind\":\"integer\",\"stored\":\"id\",\"exact\":true}]',NULL,'{\"primary_key\":true,\"ulids\":{\"Position\":{\"name\":\"ulid\",\"type\":\"binary(16)\",\"decl\":\"binary(16)\",\"kind\":\"binary\"},\"Shard\":{\"name\":\"shard\",\"type\":\"bigint\",\"kind\":\"integer\"},\"Index\":\"place\"},\"runs\":1}',1,'customer',0,0,'server_id 1',NULL,1795399482360977);
INSERT INTO `rowfeed_feeds` VALUES ('kv','sequence','trigger','active',1,'@database@','kv','[{\"name\":\"id\",\"type\":\"bigint(20)\",\"decl\":\"bigint(20)\",\"kind\":\"integer\",\"stored\":\"id\",\"exact\":true}]',NULL,'{\"primary_key\":true}',8,NULL,2592000,0,'server_id 1',NULL,1795399480817917);
/*!40000 ALTER TABLE `rowfeed_feeds` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_flushes`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_flushes` (
  `id` int(11) NOT NULL,
  `flush_count` bigint(20) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_flushes` WRITE;
/*!40000 ALTER TABLE `rowfeed_flushes` DISABLE KEYS */;
INSERT INTO `rowfeed_flushes` VALUES (9,2);
INSERT INTO `rowfeed_flushes` VALUES (10,6);
INSERT INTO `rowfeed_flushes` VALUES (14,2);
/*!40000 ALTER TABLE `rowfeed_flushes` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_leases`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_leases` (
  `name` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `owner` varchar(150) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `expires_at` bigint(20) DEFAULT NULL,
  `acquired_at` bigint(20) NOT NULL,
  `renewals` bigint(20) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_leases` WRITE;
/*!40000 ALTER TABLE `rowfeed_leases` DISABLE KEYS */;
INSERT INTO `rowfeed_leases` VALUES ('relay:ev:evlines','',1,NULL,1795399483008979,1);
INSERT INTO `rowfeed_leases` VALUES ('relay:kv:hook','',1,NULL,1795399481051878,1);
INSERT INTO `rowfeed_leases` VALUES ('relay:kv:lines','',1,NULL,1795399481006813,1);
/*!40000 ALTER TABLE `rowfeed_leases` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_outbox_ev`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_outbox_ev` (
  `order_sequence` bigint(20) NOT NULL AUTO_INCREMENT,
  `shard` bigint(20) NOT NULL DEFAULT 0,
  `time_hint` bigint(20) DEFAULT NULL,
  `appended_at` timestamp(6) NOT NULL DEFAULT current_timestamp(6),
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`order_sequence`),
  KEY `shard` (`shard`,`order_sequence`)
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_outbox_ev` WRITE;
/*!40000 ALTER TABLE `rowfeed_outbox_ev` DISABLE KEYS */;
INSERT INTO `rowfeed_outbox_ev` VALUES (4,2,NULL,'2026-11-23 02:04:43.025118',4);
/*!40000 ALTER TABLE `rowfeed_outbox_ev` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_positions_kv`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_positions_kv` (
  `id` bigint(20) NOT NULL,
  `feed_sync_id` bigint(20) NOT NULL,
  `shard` int(11) NOT NULL,
  `bucket` int(11) NOT NULL,
  `deleted` tinyint(4) NOT NULL,
  `hidden` tinyint(4) NOT NULL,
  `published_at` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `feed_sync_id` (`feed_sync_id`,`shard`,`deleted`,`hidden`),
  KEY `deleted` (`deleted`),
  KEY `bucket` (`bucket`,`feed_sync_id`,`shard`,`deleted`,`hidden`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_positions_kv` WRITE;
/*!40000 ALTER TABLE `rowfeed_positions_kv` DISABLE KEYS */;
INSERT INTO `rowfeed_positions_kv` VALUES (1,1,7,7,0,0,1795399480917070);
INSERT INTO `rowfeed_positions_kv` VALUES (2,2,5,5,0,0,1795399480917070);
INSERT INTO `rowfeed_positions_kv` VALUES (3,11,3,3,1,0,1795399482218196);
INSERT INTO `rowfeed_positions_kv` VALUES (4,4,0,0,0,0,1795399480917070);
INSERT INTO `rowfeed_positions_kv` VALUES (5,12,6,6,0,0,1795399482218196);
INSERT INTO `rowfeed_positions_kv` VALUES (6,6,4,4,0,0,1795399480917070);
INSERT INTO `rowfeed_positions_kv` VALUES (7,7,2,2,0,0,1795399480917070);
INSERT INTO `rowfeed_positions_kv` VALUES (8,8,3,3,0,0,1795399480917070);
INSERT INTO `rowfeed_positions_kv` VALUES (9,9,5,5,0,0,1795399480917070);
INSERT INTO `rowfeed_positions_kv` VALUES (10,10,1,1,0,0,1795399480917070);
INSERT INTO `rowfeed_positions_kv` VALUES (11,13,7,7,0,0,1795399482218196);
/*!40000 ALTER TABLE `rowfeed_positions_kv` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_processed`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_processed` (
  `consumer` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `generation` bigint(20) NOT NULL,
  `shard` bigint(20) NOT NULL,
  `position` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `processed_at` bigint(20) NOT NULL,
  PRIMARY KEY (`consumer`,`feed`,`generation`,`shard`,`position`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_processed` WRITE;
/*!40000 ALTER TABLE `rowfeed_processed` DISABLE KEYS */;
/*!40000 ALTER TABLE `rowfeed_processed` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_schema_version`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_schema_version` (
  `version` int(11) NOT NULL,
  `applied_at` bigint(20) NOT NULL,
  PRIMARY KEY (`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_schema_version` WRITE;
/*!40000 ALTER TABLE `rowfeed_schema_version` DISABLE KEYS */;
INSERT INTO `rowfeed_schema_version` VALUES (1,1795399480784418);
INSERT INTO `rowfeed_schema_version` VALUES (2,1795399480788350);
INSERT INTO `rowfeed_schema_version` VALUES (3,1795399480789159);
INSERT INTO `rowfeed_schema_version` VALUES (4,1795399480789829);
INSERT INTO `rowfeed_schema_version` VALUES (5,1795399480791621);
INSERT INTO `rowfeed_schema_version` VALUES (6,1795399480792943);
INSERT INTO `rowfeed_schema_version` VALUES (7,1795399480794101);
/*!40000 ALTER TABLE `rowfeed_schema_version` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_sequences`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_sequences` (
  `name` varchar(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `value` bigint(20) NOT NULL,
  `version` bigint(20) NOT NULL,
  `updated_at` bigint(20) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_sequences` WRITE;
/*!40000 ALTER TABLE `rowfeed_sequences` DISABLE KEYS */;
INSERT INTO `rowfeed_sequences` VALUES ('ev',0,0,1795399482361347);
INSERT INTO `rowfeed_sequences` VALUES ('kv',13,2,1795399482218196);
/*!40000 ALTER TABLE `rowfeed_sequences` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_shards`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_shards` (
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `shard` bigint(20) NOT NULL,
  `time_ms` bigint(20) NOT NULL,
  `ulid_high` bigint(20) NOT NULL,
  `ulid_low` bigint(20) NOT NULL,
  `below_high` bigint(20) NOT NULL DEFAULT 0,
  `below_low` bigint(20) NOT NULL DEFAULT 0,
  `witness` varchar(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `live_from` bigint(20) NOT NULL DEFAULT 0,
  `filled_by` bigint(20) NOT NULL DEFAULT 0,
  PRIMARY KEY (`feed`,`shard`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_shards` WRITE;
/*!40000 ALTER TABLE `rowfeed_shards` DISABLE KEYS */;
INSERT INTO `rowfeed_shards` VALUES ('ev',1,1795399482650,117663300495002909,-8255468078748192103,0,0,'',1795399482650,0);
INSERT INTO `rowfeed_shards` VALUES ('ev',2,1795399482685,117663300497307716,-5626146750612359476,0,0,'',1795399482685,0);
/*!40000 ALTER TABLE `rowfeed_shards` ENABLE KEYS */;
UNLOCK TABLES;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

