import { expect, test } from "vitest";
import { onCluster, openTestEngine } from "../../../test/helpers/engine.ts";
import { openTestHttp } from "../../../test/helpers/http-app.ts";
import { clusterRoutes } from "./routes.ts";
import { ClusterService } from "./service.ts";

test("lists the data nodes to who may read, and to nobody else", async () => {
  await using engine = await openTestEngine();
  await using http = await openTestHttp({ endpoints: clusterRoutes(new ClusterService({ engine })) });
  const answer = await http.call(await http.signIn("viewer"), { url: "/cluster/info" });
  expect(answer).toEqual({ status: "ok", message: { datastore: await engine.nodes() } });
  expect(await engine.nodes()).toHaveLength(1);
  expect(engine.kind).toBe(onCluster ? "cluster" : "embedded");
  expect((await http.app.inject({ url: "/cluster/info" })).json()).toMatchObject({ status: "signin" });
});
