import { AppError } from "../errors.ts";

/**
 * A join token, `odp1.<id>.<secret>`. It proves the agent to the controller and the controller to the agent, so the
 * first contact needs no certificate. A proof is an HMAC-SHA256 in base64; its key is the secret as UTF-8 text. The
 * agent's proof covers the DER of its request, the controller's proof its whole answer (`answerProofText`).
 */
export interface JoinToken {
  readonly id: string;
  readonly secret: string;
}

/** Body of `POST /agent/enrol`. */
export interface EnrolRequest {
  readonly id: string;
  /** PKCS #10, DER, base64. */
  readonly csr: string;
  readonly proof: string;
  /** True: the agent was given the name in `csr`, so a token for another host is refused. Absent from earlier agents. */
  readonly named?: boolean;
}

/** Member `message` of the answer's envelope. */
export interface EnrolAnswer {
  /** DER, base64. */
  readonly certificate: string;
  readonly authorities: readonly string[];
  /** Port on the host of the requested URL. Used if `controllers` is empty. */
  readonly agentPort: number;
  /** `host:port` each. */
  readonly controllers: readonly string[];
  readonly host: string;
  readonly tenant: string;
  readonly proof: string;
}

const PREFIX = "odp1";

export function parseJoinToken(token: string): JoinToken {
  const [prefix, id, secret, ...rest] = token.trim().split(".");
  if (prefix !== PREFIX || !id || !secret || rest.length > 0) {
    throw new AppError("invalid", "The join token is not of the form odp1.<id>.<secret>.");
  }
  return { id, secret };
}

export function printJoinToken(token: JoinToken): string {
  return `${PREFIX}.${token.id}.${token.secret}`;
}

/** The bytes that the controller's proof covers: all members of the answer except the proof, as JSON in this order. */
export function answerProofText(answer: Omit<EnrolAnswer, "proof">): Uint8Array {
  const { certificate, authorities, agentPort, controllers, host, tenant } = answer;
  return new TextEncoder().encode(JSON.stringify({ certificate, authorities, agentPort, controllers, host, tenant }));
}
