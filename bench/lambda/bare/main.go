// Command bare is the least Lambda function: a yardstick for cold starts.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(context.Context) (string, error) { return "ok", nil })
}
