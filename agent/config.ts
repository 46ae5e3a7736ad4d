import os from "node:os";
import { resolve } from "node:path";
import { AppError } from "../common/errors.ts";
import { OUTBOX_MAX_BYTES } from "../common/limits.ts";

export interface AgentConfig {
  /** Base URL of a controller's HTTP interface. Needed only to enrol. */
  readonly controller: string | undefined;
  readonly token: string | undefined;
  readonly folder: string;
  /** The name that the host requests when it enrols. */
  readonly name: string;
  /** True if `name` is a setting; false if it is the name of the machine. */
  readonly isNamed: boolean;
  /** True: a host with a valid certificate enrols again with a new token. False: it does not use tokens. */
  readonly enrolsAgain: boolean;
  readonly outboxMaxBytes: number;
  /** True if controllers may open a tunnel to this address and port. */
  readonly isTunnelOpen: (address: string, port: number) => boolean;
}

/** The name of each setting as an argument and as an environment variable. The argument takes precedence. */
const SETTINGS = {
  "--controller": "ODP_AGENT_CONTROLLER",
  "--token": "ODP_AGENT_TOKEN",
  "--dir": "ODP_AGENT_DIR",
  "--name": "ODP_AGENT_NAME",
  "--enrol": "ODP_AGENT_ENROL",
  "--outbox-max-bytes": "ODP_AGENT_OUTBOX_MAX_BYTES",
  "--tunnels": "ODP_AGENT_TUNNELS",
} as const;

type Argument = keyof typeof SETTINGS;

const OUTBOX_MIN_BYTES = 256 * 1024;

/** Reads the settings. Throws `AppError("invalid")` with the name of an unknown or invalid setting. */
export function readConfig(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): AgentConfig {
  const given = readArguments(argv);
  const unknown = Object.keys(environment).find((name) => name.startsWith("ODP_AGENT_") && !isVariable(name));
  if (unknown) throw new AppError("invalid", `The setting ${unknown} is unknown.`);
  const value = (name: Argument) => given.get(name) ?? (environment[SETTINGS[name]] || undefined);
  const controller = value("--controller");
  if (controller !== undefined && !/^https?:$/.test(protocolOf(controller))) {
    throw new AppError("invalid", `--controller must be a URL such as http://host:8080, not ${controller}.`);
  }
  return {
    controller,
    token: value("--token"),
    folder: resolve(value("--dir") ?? "odp-agent"),
    name: value("--name") ?? os.hostname(),
    isNamed: value("--name") !== undefined,
    enrolsAgain: enrolsAgain(value("--enrol") ?? "again"),
    outboxMaxBytes: bytesOf(value("--outbox-max-bytes")),
    isTunnelOpen: openTunnels(value("--tunnels") ?? "all"),
  };
}

function readArguments(argv: readonly string[]): Map<string, string> {
  const given = new Map<string, string>();
  for (let index = 0; index < argv.length; index++) {
    const [name = "", ...rest] = (argv[index] ?? "").split("=");
    if (!Object.hasOwn(SETTINGS, name))
      throw new AppError("invalid", `The argument ${name} is unknown; known are ${Object.keys(SETTINGS).join(" ")}.`);
    const value = rest.length > 0 ? rest.join("=") : argv[++index];
    if (value === undefined || value === "") throw new AppError("invalid", `${name} has no value.`);
    given.set(name, value);
  }
  return given;
}

function isVariable(name: string): boolean {
  return Object.values<string>(SETTINGS).includes(name) || name === "ODP_AGENT_PORT";
}

function protocolOf(url: string): string {
  try {
    return new URL(url).protocol;
  } catch {
    return "";
  }
}

function enrolsAgain(text: string): boolean {
  if (text === "again" || text === "once") return text === "again";
  throw new AppError("invalid", `--enrol must be again or once, not ${text}.`);
}

function bytesOf(text: string | undefined): number {
  if (text === undefined) return OUTBOX_MAX_BYTES;
  const bytes = Number(text);
  if (Number.isSafeInteger(bytes) && bytes >= OUTBOX_MIN_BYTES) return bytes;
  throw new AppError(
    "invalid",
    `--outbox-max-bytes must be a whole number of at least ${OUTBOX_MIN_BYTES}, not ${text}.`,
  );
}

/**
 * Parses `all`, `none`, or a list of targets `<address>:<port>` separated by commas. `*` stands for any address or any
 * port.
 */
function openTunnels(text: string): AgentConfig["isTunnelOpen"] {
  if (text === "all") return () => true;
  if (text === "none") return () => false;
  const places = new Set(text.split(",").map((place) => place.trim()));
  for (const place of places)
    if (!/^.+:(\*|[0-9]{1,5})$/.test(place))
      throw new AppError("invalid", `--tunnels must be all, none, or places such as 10.0.0.5:22,*:22, not ${place}.`);
  return (address, port) =>
    [address, "*"].some((name) => [String(port), "*"].some((number) => places.has(`${name}:${number}`)));
}
