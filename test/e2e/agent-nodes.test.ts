import { readlink } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installNode, OTHER_NODES } from "../helpers/programs/other-node.ts";
import { TIMES } from "../helpers/time/times.ts";
import { Installation } from "./installation.ts";

/** An agent on another version of Node than the controller's. The address of the controller is an IP address. */

const NEWEST = OTHER_NODES.slice(-1);
let odp: Installation;

beforeAll(async () => {
  odp = await Installation.start({ ODP_STORE: "embedded" });
});

afterAll(async () => {
  await odp.stop();
});

test.each(TIMES > 1 ? OTHER_NODES : NEWEST)("an agent on Node %s connects and runs a command", async (version) => {
  expect(new URL(odp.url).hostname).toBe("127.0.0.1");
  const host = `node-${version}`;
  const node = await installNode(version);
  await odp.enrol(host, { node });
  expect(await readlink(`/proc/${odp.agent(host).pid}/exe`)).toBe(node);
  const param = encodeURIComponent(JSON.stringify({ cmd: "echo alive", "HOST!": host, timeout: 60 }));
  const answer = await odp.ok("GET", `/job/exec/remote_command@system/common?receive_output=true&param=${param}`);
  expect(JSON.stringify(answer)).toContain("alive\\n");
  expect(odp.agent(host).output).not.toContain("DEP0123");
});
