-- name: clock
SELECT DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())

