export { PeerLinks } from "./peer-link.ts";
export { AgentServer } from "./server.ts";
