package main

import (
	"context"
	"database/sql"
	"fmt"

	driver "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/rowfeed/rowfeed"
)

// Product is GORM's model. With --capture column, the writer's model does not have the column feed_sync_id.
type Product struct {
	ID    int64
	Name  string
	Price int64
}

func withGORM(ctx context.Context, db *sql.DB, feed *rowfeed.Feed) error {
	orm, err := gorm.Open(driver.New(driver.Config{Conn: db}), &gorm.Config{})
	if err != nil {
		return err
	}
	lamp := Product{Name: "lamp", Price: 40}
	if err := orm.WithContext(ctx).Create(&lamp).Error; err != nil {
		return err
	}
	if lamp.ID == 0 { // GORM gets it by RETURNING, which triggers do not affect
		return fmt.Errorf("GORM got no id")
	}
	return orm.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Model(&lamp).Update("price", 50).Error; err != nil {
			return err
		}
		// GORM's transaction, as an argument for rowfeed.
		return feed.Republish(ctx, rowfeed.InTx(tx.Statement.ConnPool.(*sql.Tx)), rowfeed.Key{lamp.ID})
	})
}
