using System;
using Newtonsoft.Json;
using RentalClient.Api;
using RentalClient.Client;
using RentalClient.Model;

/// <summary>A create, a PATCH, a list and a typed error with the client that openapi-generator makes for C#.</summary>
static class Program
{
    static void Equal<T>(T found, T expected)
    {
        if (!Equals(found, expected)) throw new Exception(found + " is not " + expected);
    }

    static void Main()
    {
        var configuration = new Configuration
        {
            BasePath = Environment.GetEnvironmentVariable("RENTAL_BASE_URL"),
            AccessToken = Environment.GetEnvironmentVariable("RENTAL_API_KEY"),
        };
        var vehicles = new VehiclesApi(configuration);

        // The constructor asks for the name, but only what is set as a property is sent.
        var wanted = new VehicleCreate(name: "Red Corolla") { Name = "Red Corolla", DailyRate = 1234567.89 };
        var created = vehicles.CreateVehicle(wanted, Guid.NewGuid().ToString());
        Equal(created.DailyRate, 1234567.89);
        Equal(created.Status, VehicleStatus.Available);

        var changed = vehicles.UpdateVehicle(created.Id, vehicleUpdate: new VehicleUpdate { Status = VehicleStatus.Maintenance });
        Equal(changed.Status, VehicleStatus.Maintenance);
        // What was not set is not sent: null would clear it.
        Equal(changed.DailyRate, 1234567.89);

        var page = vehicles.ListVehicles(limit: 1);
        Equal(page.Data[0].Id, created.Id);
        Equal(page.HasMore, true);

        try
        {
            vehicles.GetVehicle(Guid.Empty);
            throw new Exception("no error");
        }
        catch (ApiException error)
        {
            Equal(error.ErrorCode, 404);
            var problem = JsonConvert.DeserializeObject<Error>((string)error.ErrorContent);
            Equal(problem.VarError.Code, ErrorCode.ResourceMissing);
        }
        Console.WriteLine("C#: compiled; a create, an update, a list and a typed error");
    }
}
