import { AppError } from "../errors.ts";

/**
 * Terms on which both ends of an enrolment agree. A join token is `odp1.<id>.<secret>`; it proves the controller to the
 * agent as well as the agent to the controller, so the first contact needs no certificate. The key of both proofs is
 * the secret's text in UTF-8, the function HMAC-SHA256, the form base64: the agent proves over the DER of its request,
 * the controller over all it answers (`answerProofText`).
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
}

/** Member `message` of the answer's envelope. */
export interface EnrolAnswer {
  /** DER, base64. */
  readonly certificate: string;
  readonly authorities: readonly string[];
  /** On the host of the URL that was asked; used when `controllers` is empty. */
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

/** The bytes that the controller's proof covers: all members of the answer but the proof, as JSON in this order. */
export function answerProofText(answer: Omit<EnrolAnswer, "proof">): Uint8Array {
  const { certificate, authorities, agentPort, controllers, host, tenant } = answer;
  return new TextEncoder().encode(JSON.stringify({ certificate, authorities, agentPort, controllers, host, tenant }));
}
