import java.util.List;
import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.VehiclesApi;
import org.openapitools.client.model.Error;
import org.openapitools.client.model.ErrorCode;
import org.openapitools.client.model.Vehicle;
import org.openapitools.client.model.VehicleCreate;
import org.openapitools.client.model.VehicleList;
import org.openapitools.client.model.VehicleStatus;
import org.openapitools.client.model.VehicleUpdate;

/** A create, a list, a PATCH and a typed error with the client that openapi-generator makes for Java. */
class Main {
    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("RENTAL_BASE_URL"));
        client.setRequestInterceptor(
            request -> request.header("Authorization", "Bearer " + System.getenv("RENTAL_API_KEY")));
        VehiclesApi vehicles = new VehiclesApi(client);

        Vehicle created = vehicles.createVehicle(new VehicleCreate().name("Red Corolla").dailyRate(1234567.89), null);
        equal(created.getDailyRate(), 1234567.89);

        VehicleUpdate update = new VehicleUpdate().status(VehicleStatus.MAINTENANCE);
        Vehicle changed = vehicles.updateVehicle(created.getId(), null, null, update);
        equal(changed.getStatus(), VehicleStatus.MAINTENANCE);

        VehicleList page = vehicles.listVehicles(1, null, null, null, null, null, null, null);
        equal(page.getData().stream().map(Vehicle::getId).toList(), List.of(created.getId()));
        equal(page.getHasMore(), true);

        try {
            vehicles.getVehicle(new UUID(0, 0), null);
            throw new AssertionError("no error");
        } catch (ApiException error) {
            equal(error.getCode(), 404);
            Error problem = ApiClient.createDefaultObjectMapper().readValue(error.getResponseBody(), Error.class);
            equal(problem.getError().getCode(), ErrorCode.RESOURCE_MISSING);
        }
        System.out.println("Java: compiled; a create, an update, a list and a typed error");
    }

    private static void equal(Object found, Object expected) {
        if (!expected.equals(found)) throw new AssertionError(found + " is not " + expected);
    }
}
