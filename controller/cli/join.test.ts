import { expect, test } from "vitest";
import { PLAIN } from "./formats/paint.ts";
import { rendered } from "./formats/rendered.ts";
import { joinLine, TOKEN_VIEW } from "./join.ts";

test("the line by which a host joins names the controller as hosts reach it", () => {
  const token = { token: "odp1.a.b", controller: "http://odp.example.org:8080" };
  expect(joinLine(token, "web-1", "http://127.0.0.1:8080")).toBe(
    "ODP_AGENT_CONTROLLER=http://odp.example.org:8080 ODP_AGENT_TOKEN=odp1.a.b ODP_AGENT_NAME=web-1 ODP_AGENT_DIR=/var/lib/odp-agent node --max-semi-space-size=1 agent.js",
  );
  expect(joinLine({ token: "odp1.a.b" }, undefined, "http://127.0.0.1:8080")).toBe(
    "ODP_AGENT_CONTROLLER=http://127.0.0.1:8080 ODP_AGENT_TOKEN=odp1.a.b ODP_AGENT_DIR=/var/lib/odp-agent node --max-semi-space-size=1 agent.js",
  );
});

test("tokens are shown with their host and the agent that used them", () => {
  const token = { id: "01", host: "", user: "admin", expires: 1_000, used: 0, usedBy: "" };
  const used = { ...token, host: "web-1", used: 61_000, usedBy: "web-1" };
  expect(rendered([token, used], { format: "table", paint: PLAIN, nowMs: 181_000 }, TOKEN_VIEW).split("\n")).toEqual([
    "id  host          user   expires    used                  by",
    "--  ------------  -----  ---------  --------------------  -----",
    "01  any new host  admin  3 min ago",
    "01  web-1         admin  3 min ago  1970-01-01T00:01:01Z  web-1",
    "",
  ]);
});
