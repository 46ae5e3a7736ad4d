import { expect, test } from "vitest";
import { joinLine, tokenRows } from "./join.ts";

test("the line by which a host joins names the controller as hosts reach it", () => {
  const token = { token: "odp1.a.b", controller: "http://odp.example.org:8080" };
  expect(joinLine(token, "web-1", "http://127.0.0.1:8080")).toBe(
    "ODP_AGENT_CONTROLLER=http://odp.example.org:8080 ODP_AGENT_TOKEN=odp1.a.b ODP_AGENT_NAME=web-1 ODP_AGENT_DIR=/var/lib/odp-agent node agent.js",
  );
  expect(joinLine({ token: "odp1.a.b" }, undefined, "http://127.0.0.1:8080")).toBe(
    "ODP_AGENT_CONTROLLER=http://127.0.0.1:8080 ODP_AGENT_TOKEN=odp1.a.b ODP_AGENT_DIR=/var/lib/odp-agent node agent.js",
  );
});

test("tokens are shown with their host and the agent that used them", () => {
  const token = { id: "01", host: "", user: "admin", expires: 0, used: 0, usedBy: "" };
  const expires = "1970-01-01T00:00:00.000Z";
  expect(tokenRows([token, { ...token, host: "web-1", used: 1_000, usedBy: "web-1" }])).toEqual([
    { id: "01", host: "any new host", user: "admin", expires, used: "" },
    { id: "01", host: "web-1", user: "admin", expires, used: "1970-01-01T00:00:01.000Z by web-1" },
  ]);
});
