import { afterAll, beforeAll } from "vitest";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { BareAgent, openTestHosts, type TestHosts, type TestIdentity } from "./hosts.ts";

/** Agents at the agent port of one controller. */

/** The controller of the calling file. */
export let world: TestHosts;
const open: BareAgent[] = [];

/** Opens a controller for all tests of the calling file, and closes its agents after them. */
export function useAgentPort(): void {
  beforeAll(async () => {
    world = await openTestHosts();
  });
  afterAll(async () => {
    for (const agent of open.splice(0)) agent.close();
    await world[Symbol.asyncDispose]();
  });
}

/** Returns an agent with this identity, connected to a port. */
export function agentOf(identity: TestIdentity, port = world.agentPort): BareAgent {
  const agent = new BareAgent(port, identity);
  open.push(agent);
  return agent;
}

/** Enrols a host, and opens a session of its agent. */
export async function connected(host: string): Promise<{ agent: BareAgent; identity: TestIdentity; epoch: number }> {
  const identity = await world.enrol(host);
  const agent = agentOf(identity);
  const { epoch } = await agent.hello();
  return { agent, identity, epoch };
}

/** Returns an entry of now. */
export function entry(sequence: number, body: Entry["body"]): Entry {
  return { sequence, timeMs: Date.now(), traceparent: "", body };
}

/** Resolves when the record of the host has that status; the write follows the event. */
export function presence(host: string, online: boolean): Promise<void> {
  return new Promise((resolve) => {
    const stop = world.hosts.onPresence((event) => {
      if (event.host !== host || event.online !== online) return;
      stop();
      resolve();
    });
  });
}
