import { type HostObject, refusedFunction } from "../../scripting/index.ts";

/** Host objects that existing scripts may call but that this platform does not offer. */
export const REFUSED_HOST_OBJECTS: readonly HostObject[] = [
  refused("nlp", {
    why: "questions in words are answered nowhere here",
    functions: { answer: '"shop", "how many?"', update: '"/shop.txt"' },
  }),
  refused("zabbix", {
    why: "agents of other programs are not deployed here; hosts get the agent of this one",
    functions: {
      deploy: '["web-1"], "agent"',
      restart: '["web-1"], "agent"',
      start: '["web-1"], "agent"',
      stop: '["web-1"], "agent"',
      undeploy: '["web-1"], "agent"',
    },
  }),
];

interface Refused {
  readonly why: string;
  /** Maps each function to the arguments of its example. */
  readonly functions: Readonly<Record<string, string>>;
}

function refused(name: string, { why, functions }: Refused): HostObject {
  return {
    name,
    summary: "Not offered: scripts that call it are told so",
    functions: Object.entries(functions).map(([member, example]) =>
      refusedFunction(member, { object: name, why, example }),
    ),
  };
}
