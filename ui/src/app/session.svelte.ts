/**
 * Who is signed in. Credentials are in the memory of this tab alone: a reload forgets them, and another tab has its own.
 */

import { canSign, Client, serverInfo, wellKnownCredential, type Credential, type ServerInfo } from '../protocol';

type Phase = 'starting' | 'unreachable' | 'ready';

class Session {
  phase = $state<Phase>('starting');
  /** What the server says about itself. */
  info = $state.raw<ServerInfo>();
  /** Why the server could not be asked. */
  error = $state.raw<unknown>();
  /** The accounts that are signed in. */
  clients = $state.raw<readonly Client[]>([]);
  /** The one that pages show; `undefined`: the form to sign in is shown. */
  client = $state.raw<Client>();

  #clockOffsetMillis = 0;

  /** Asks the server what it is, and signs in by itself on a development server of this machine. */
  async start(): Promise<void> {
    this.phase = 'starting';
    try {
      const { info, clockOffsetMillis } = await serverInfo();
      this.info = info;
      this.#clockOffsetMillis = clockOffsetMillis;
      if (info.development && canSign() && !this.#signedOut) {
        await this.signIn(await wellKnownCredential(info.development.account)).catch(() => undefined);
      }
      this.phase = 'ready';
    } catch (error) {
      this.error = error;
      this.phase = 'unreachable';
    }
  }

  /** Checks a credential with the server and uses it. Throws what is wrong with it. */
  async signIn(credential: Credential): Promise<void> {
    const client = new Client(credential, this.#clockOffsetMillis);
    await client.check();
    this.clients = [...this.clients.filter((other) => other.account !== client.account), client];
    this.client = client;
  }

  /** Shows another account that is signed in; without one, the form to sign in. */
  show(client: Client | undefined): void {
    this.client = client;
  }

  /** Forgets a credential. */
  signOut(client: Client): void {
    this.#signedOut = true;
    this.clients = this.clients.filter((other) => other !== client);
    if (this.client === client) this.client = this.clients[0];
  }

  #signedOut = false;
}

export const session = new Session();

/** The client of the account that is shown. Pages exist only while there is one. */
export function useClient(): Client {
  if (!session.client) throw new Error('Nobody is signed in.');
  return session.client;
}
