-- name: clock
SELECT {{now}}
