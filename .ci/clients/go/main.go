// A create, a list, a PATCH and a typed error with the client that openapi-generator makes for Go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	rental "example.com/rental/client"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func equal(found, expected any) {
	if found != expected {
		must(fmt.Errorf("%v is not %v", found, expected))
	}
}

func main() {
	configuration := rental.NewConfiguration()
	configuration.Servers = rental.ServerConfigurations{{URL: os.Getenv("RENTAL_BASE_URL")}}
	api := rental.NewAPIClient(configuration).VehiclesAPI
	ctx := context.WithValue(context.Background(), rental.ContextAccessToken, os.Getenv("RENTAL_API_KEY"))

	wanted := *rental.NewVehicleCreate("Red Corolla")
	wanted.SetDailyRate(1234567.89)
	created, _, err := api.CreateVehicle(ctx).VehicleCreate(wanted).Execute()
	must(err)
	equal(created.GetDailyRate(), 1234567.89)

	update := *rental.NewVehicleUpdate()
	update.SetStatus(rental.VEHICLESTATUS_MAINTENANCE)
	changed, _, err := api.UpdateVehicle(ctx, created.Id).VehicleUpdate(update).Execute()
	must(err)
	equal(changed.Status, rental.VEHICLESTATUS_MAINTENANCE)

	page, _, err := api.ListVehicles(ctx).Limit(1).Execute()
	must(err)
	equal(page.Data[0].Id, created.Id)
	equal(page.HasMore, true)

	_, response, err := api.GetVehicle(ctx, "00000000-0000-0000-0000-000000000000").Execute()
	var problem *rental.GenericOpenAPIError
	if !errors.As(err, &problem) {
		must(fmt.Errorf("no error of the API: %v", err))
	}
	equal(response.StatusCode, 404)
	model, known := problem.Model().(rental.Error)
	equal(known, true)
	equal(model.Error.Code, rental.ERRORCODE_RESOURCE_MISSING)
	fmt.Println("Go: compiled; a create, an update, a list and a typed error")
}
