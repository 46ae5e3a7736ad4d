import { createHmac } from "node:crypto";
import { createKeyPem, createRequest } from "../../agent/identity/csr.ts";
import type { Identity } from "../../agent/identity/identity.ts";
import { parseJoinToken, type EnrolAnswer, type EnrolRequest } from "../../common/agent/enrolment.ts";
import { mapLimited } from "../../common/concurrency.ts";
import { EmulatedAgent, type Behaviour } from "./agent.ts";

/** Agents that connect at once. A controller limits new sessions, and creates certificates one after the other. */
const AT_ONCE = 32;

/** Admits agents: the service of a test, or a controller over HTTP. */
export interface Admission {
  token(host: string): Promise<string>;
  enrol(request: EnrolRequest): Promise<EnrolAnswer>;
}

/** Agents of many hosts in one process, each enrolled, with its own connection and certificate. */
export class EmulatedFleet {
  readonly agents: readonly EmulatedAgent[];

  private constructor(agents: readonly EmulatedAgent[]) {
    this.agents = agents;
  }

  /** Resolves when all agents are connected. */
  static async start(hosts: readonly string[], admission: Admission, behave: Behaviour): Promise<EmulatedFleet> {
    // One key for all, because creating a key for each would take longer than all other work.
    const keyPem = createKeyPem();
    const agents = await mapLimited(hosts, AT_ONCE, async (host) => {
      const agent = new EmulatedAgent(await enrolled(host, keyPem, admission), behave);
      await agent.start();
      return agent;
    });
    return new EmulatedFleet(agents);
  }

  agent(host: string): EmulatedAgent {
    const agent = this.agents.find((one) => one.host === host);
    if (!agent) throw new Error(`There is no emulated agent ${host}.`);
    return agent;
  }

  async stop(): Promise<void> {
    await Promise.all(this.agents.map((agent) => agent.stop()));
  }
}

async function enrolled(host: string, keyPem: string, admission: Admission): Promise<Identity> {
  const token = await admission.token(host);
  const { id, secret } = parseJoinToken(token);
  const csr = createRequest(keyPem, host);
  const proof = createHmac("sha256", secret).update(csr).digest("base64");
  const answer = await admission.enrol({ id, csr: csr.toString("base64"), proof });
  const controllers = answer.controllers.length > 0 ? answer.controllers : [`localhost:${answer.agentPort}`];
  const { tenant, certificate, authorities } = answer;
  return { format: 1, host, tenant, keyPem, certificate, authorities, controllers };
}
