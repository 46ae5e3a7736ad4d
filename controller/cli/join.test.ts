import { expect, test } from "vitest";
import { joinLine } from "./join.ts";

test("the line by which a host joins names the controller as hosts reach it", () => {
  const token = { token: "odp1.a.b", controller: "http://odp.example.org:8080" };
  expect(joinLine(token, "web-1", "http://127.0.0.1:8080")).toBe(
    "ODP_AGENT_CONTROLLER=http://odp.example.org:8080 ODP_AGENT_TOKEN=odp1.a.b ODP_AGENT_NAME=web-1 ODP_AGENT_DIR=/var/lib/odp-agent node agent.js",
  );
  expect(joinLine({ token: "odp1.a.b" }, undefined, "http://127.0.0.1:8080")).toBe(
    "ODP_AGENT_CONTROLLER=http://127.0.0.1:8080 ODP_AGENT_TOKEN=odp1.a.b ODP_AGENT_DIR=/var/lib/odp-agent node agent.js",
  );
});
