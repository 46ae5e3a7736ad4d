import { expect } from "vitest";
import { loadIdentity, storeIdentity, type Identity } from "../../agent/identity/identity.ts";
import { makeFolder } from "../../agent/disk/files.ts";
import { StateFile } from "../../agent/disk/state.ts";
import { openSecretKey } from "../../controller/secrets/index.ts";
import { histories } from "./histories.ts";
import { liveThrough, type Life } from "./lives.ts";

const WRITES_MAX = 6;
const KEY = "/etc/odp/keys/secret.key";

histories({
  promise: "agent-power-cut",
  part: "the agent's state and identity",
  count: 250,
  found: [["two names of one file, one of them written anew", 260]],
  history: async (seed) => {
    const answered = { state: 0, identity: 0 };
    await liveThrough({ seed, lives: 4, operationsMax: 60, live: (life) => keepWriting(life, answered) });
  },
});

histories({
  promise: "embedded-power-cut",
  part: "the key file of the controller",
  count: 250,
  found: [["a key that was used before its name was durable", 1]],
  history: async (seed) => {
    let used: string | undefined;
    const live = async ({ files }: Life): Promise<void> => {
      const { keyId } = await openSecretKey({ file: KEY, create: true, files });
      expect(keyId, "the key that sealed secrets").toBe(used ?? keyId);
      used = keyId;
    };
    await liveThrough({ seed, lives: 4, operationsMax: 30, live });
  },
});

async function keepWriting({ files }: Life, answered: { state: number; identity: number }): Promise<void> {
  await makeFolder(files, "/var/agent");
  const state = new StateFile("/var/agent/desired.bin", files);
  const wanted = (await state.load())?.revision ?? 0;
  expect(wanted, "revision of the state").toBeGreaterThanOrEqual(answered.state);
  const host = Number((await loadIdentity("/var/agent/identity.json", files))?.host ?? 0);
  expect(host, "identity").toBeGreaterThanOrEqual(answered.identity);
  for (let count = 1; count <= WRITES_MAX; count++) {
    await state.store({ revision: wanted + count, policies: policies(count) });
    answered.state = wanted + count;
    await storeIdentity("/var/agent/identity.json", identity(host + count), files);
    answered.identity = host + count;
  }
}

function policies(count: number) {
  return Array.from({ length: count }, (_, at) => ({
    name: `p${at}`,
    revision: 1,
    spec: "x".repeat(300),
    depot: undefined,
  }));
}

function identity(number: number): Identity {
  return {
    format: 1,
    host: String(number),
    tenant: "matrix",
    keyPem: "k".repeat(700),
    certificate: "c",
    authorities: [],
    controllers: [],
  };
}
