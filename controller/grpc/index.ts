export { PeerLinks, type DialPeer } from "./peer-link.ts";
export type { PeerServices } from "./peer-stream.ts";
export { AgentServer } from "./server.ts";
