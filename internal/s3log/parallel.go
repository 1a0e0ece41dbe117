package s3log

import (
	"context"
	"sync"
)

// parallel makes parts of every item in a few goroutines, and takes the parts here, those
// of one item in their order. An error of take ends it all. It returns when all goroutines
// have ended.
func parallel[I, P any](ctx context.Context, workers int, items func(yield func(I) bool), produce func(ctx context.Context, item I, emit func(P) bool), take func(P) error) error {
	ctx, cancel := context.WithCancel(ctx)
	todo := make(chan I)
	parts := make(chan P)
	var producers sync.WaitGroup
	producers.Go(func() {
		defer close(todo)
		items(func(item I) bool {
			select {
			case todo <- item:
				return true
			case <-ctx.Done():
				return false
			}
		})
	})
	for range workers {
		producers.Go(func() {
			for item := range todo {
				produce(ctx, item, func(part P) bool {
					select {
					case parts <- part:
						return true
					case <-ctx.Done():
						return false
					}
				})
			}
		})
	}
	go func() {
		producers.Wait()
		close(parts)
	}()
	var err error
	for part := range parts {
		if err != nil {
			continue // they may not wait for us
		}
		if err = take(part); err != nil {
			cancel()
		}
	}
	cancel()
	return err
}
