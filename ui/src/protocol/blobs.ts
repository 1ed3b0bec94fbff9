/** The Blob service: containers, blobs, uploads and downloads, tags, stored access policies. */

import { parsePolicies, policiesToXml, type StoredPolicy } from './acl';
import { ProtocolError } from './error';
import { metadataHeaders, metadataOf, metadataOfXml, type Metadata } from './metadata';
import type { CallOptions, RequestOptions, Transport } from './transport';
import { upload, type UploadOptions } from './upload';
import { child, children, childText, document, element, parseXml } from './xml';

export interface Container {
  readonly name: string;
  readonly lastModified: string;
  readonly etag: string;
  readonly leaseState: string;
  readonly publicAccess?: 'container' | 'blob';
  readonly metadata: Metadata;
}

/** A blob in a list. */
export interface Blob {
  readonly name: string;
  readonly snapshot?: string;
  readonly bytes: number;
  readonly contentType: string;
  readonly blobType: string;
  readonly lastModified: string;
  readonly etag: string;
  readonly accessTier?: string;
  readonly leaseState?: string;
  readonly headers: BlobHeaders;
  readonly metadata: Metadata;
}

/** What a blob is stored with for those who read it. */
export interface BlobHeaders {
  readonly contentType?: string;
  readonly contentEncoding?: string;
  readonly contentLanguage?: string;
  readonly contentDisposition?: string;
  readonly contentMd5?: string;
  readonly cacheControl?: string;
}

export interface BlobPage {
  readonly blobs: Blob[];
  /** What names have in common up to the delimiter: the directories of a tree. */
  readonly prefixes: string[];
  readonly next?: string;
}

export interface BlobProperties {
  readonly bytes: number;
  readonly contentType: string;
  readonly contentEncoding?: string;
  readonly contentLanguage?: string;
  readonly contentDisposition?: string;
  readonly contentMd5?: string;
  readonly blobType: string;
  readonly etag: string;
  readonly lastModified: string;
  readonly created?: string;
  readonly accessTier?: string;
  readonly leaseState?: string;
  readonly leaseDuration?: string;
  readonly copyStatus?: string;
  readonly copySource?: string;
  readonly archiveStatus?: string;
  readonly tagCount: number;
  readonly metadata: Metadata;
}

export class Blobs {
  constructor(readonly transport: Transport) {}

  /** A page of containers in the order of their names. */
  async containers(
    options: CallOptions & { prefix?: string; marker?: string; max?: number } = {},
  ): Promise<{ containers: Container[]; next?: string }> {
    const { credential } = this.transport;
    if (credential.kind === 'sas' && credential.scope?.service === 'blob') {
      const { name } = credential.scope;
      return { containers: [{ name, lastModified: '', etag: '', leaseState: '', metadata: new Map() }] };
    }
    const { prefix, marker, max, signal } = options;
    const query = { comp: 'list', include: 'metadata', prefix: prefix || undefined, marker, maxresults: max };
    const response = await this.#send({ path: '/', query, signal });
    const root = parseXml(await response.text());
    const next = childText(root, 'NextMarker');
    const containers = children(child(root, 'Containers'), 'Container').map(containerOf);
    return { containers, ...(next ? { next } : {}) };
  }

  async createContainer(
    container: string,
    options: CallOptions & { publicAccess?: 'container' | 'blob'; metadata?: Metadata } = {},
  ): Promise<void> {
    await this.#container('PUT', container, {
      headers: { 'x-ms-blob-public-access': options.publicAccess, ...metadataHeaders(options.metadata ?? new Map()) },
      signal: options.signal,
    });
  }

  async deleteContainer(container: string, options: CallOptions = {}): Promise<void> {
    await this.#container('DELETE', container, { signal: options.signal });
  }

  /** Replaces all metadata of a container. */
  async setContainerMetadata(container: string, metadata: Metadata, options: CallOptions = {}): Promise<void> {
    await this.#container('PUT', container, {
      query: { comp: 'metadata' },
      headers: metadataHeaders(metadata),
      signal: options.signal,
    });
  }

  /** The stored access policies and who may read without credentials. Needs the key. */
  async policies(
    container: string,
    options: CallOptions = {},
  ): Promise<{ policies: StoredPolicy[]; publicAccess?: string }> {
    const query = { comp: 'acl' };
    const response = await this.#container('GET', container, { query, auth: 'key', signal: options.signal });
    const publicAccess = response.headers.get('x-ms-blob-public-access');
    return { policies: parsePolicies(await response.text()), ...(publicAccess ? { publicAccess } : {}) };
  }

  async setPolicies(
    container: string,
    policies: readonly StoredPolicy[],
    publicAccess: 'container' | 'blob' | undefined,
    options: CallOptions = {},
  ): Promise<void> {
    await this.#container('PUT', container, {
      query: { comp: 'acl' },
      headers: { 'content-type': 'application/xml', 'x-ms-blob-public-access': publicAccess },
      body: policiesToXml(policies),
      auth: 'key',
      signal: options.signal,
    });
  }

  /** A page of blobs. With a delimiter, names are grouped up to it. */
  async list(
    container: string,
    options: CallOptions & {
      prefix?: string | undefined;
      delimiter?: string | undefined;
      marker?: string | undefined;
      max?: number | undefined;
      include?: string | undefined;
    } = {},
  ): Promise<BlobPage> {
    const response = await this.#container('GET', container, {
      query: {
        comp: 'list',
        prefix: options.prefix || undefined,
        delimiter: options.delimiter,
        marker: options.marker,
        maxresults: options.max,
        include: options.include,
      },
      signal: options.signal,
    });
    return parseBlobPage(await response.text());
  }

  async properties(
    container: string,
    blob: string,
    options: CallOptions & { snapshot?: string | undefined } = {},
  ): Promise<BlobProperties> {
    const path = blobPath(container, blob);
    const query = { snapshot: options.snapshot };
    const { headers } = await this.#send({ method: 'HEAD', path, query, signal: options.signal });
    return propertiesOf(headers);
  }

  /** Replaces all stored headers: one that is missing is removed. */
  async setHeaders(
    container: string,
    blob: string,
    headers: BlobHeaders,
    options: CallOptions & { etag?: string } = {},
  ): Promise<void> {
    await this.#send({
      method: 'PUT',
      path: blobPath(container, blob),
      query: { comp: 'properties' },
      headers: {
        'x-ms-blob-content-type': headers.contentType || undefined,
        'x-ms-blob-content-encoding': headers.contentEncoding || undefined,
        'x-ms-blob-content-language': headers.contentLanguage || undefined,
        'x-ms-blob-content-disposition': headers.contentDisposition || undefined,
        'x-ms-blob-content-md5': headers.contentMd5 || undefined,
        'x-ms-blob-cache-control': headers.cacheControl || undefined,
        'if-match': options.etag,
      },
      signal: options.signal,
    });
  }

  async setTier(container: string, blob: string, tier: string, options: CallOptions = {}): Promise<void> {
    await this.#send({
      method: 'PUT',
      path: blobPath(container, blob),
      query: { comp: 'tier' },
      headers: { 'x-ms-access-tier': tier },
      signal: options.signal,
    });
  }

  /** Keeps the blob as it is now, and returns the time that names the snapshot. */
  async snapshot(container: string, blob: string, options: CallOptions = {}): Promise<string> {
    const path = blobPath(container, blob);
    const response = await this.#send({ method: 'PUT', path, query: { comp: 'snapshot' }, signal: options.signal });
    return response.headers.get('x-ms-snapshot') ?? '';
  }

  /**
   * The content, or a range of it: `end` is the last byte. The caller reads the response's body; it never becomes a page of
   * the console's origin (show it only through a sandboxed object URL).
   */
  async read(
    container: string,
    blob: string,
    options: CallOptions & { start?: number; end?: number; snapshot?: string | undefined } = {},
  ): Promise<Response> {
    const { start, end } = options;
    const range = start === undefined ? undefined : `bytes=${start}-${end ?? ''}`;
    return this.#send({
      path: blobPath(container, blob),
      query: { snapshot: options.snapshot },
      headers: { 'x-ms-range': range },
      signal: options.signal,
    });
  }

  /** Uploads a file, in blocks if it is large. */
  async upload(container: string, blob: string, file: globalThis.Blob, options: UploadOptions = {}): Promise<void> {
    await upload(this.transport, blobPath(container, blob), file, options);
  }

  async delete(
    container: string,
    blob: string,
    options: CallOptions & { snapshots?: 'include' | 'only'; snapshot?: string } = {},
  ): Promise<void> {
    await this.#send({
      method: 'DELETE',
      path: blobPath(container, blob),
      query: { snapshot: options.snapshot },
      headers: { 'x-ms-delete-snapshots': options.snapshots },
      signal: options.signal,
    });
  }

  /** Replaces all metadata of a blob, if its etag is still the same. */
  async setMetadata(
    container: string,
    blob: string,
    metadata: Metadata,
    options: CallOptions & { etag?: string } = {},
  ): Promise<void> {
    await this.#send({
      method: 'PUT',
      path: blobPath(container, blob),
      query: { comp: 'metadata' },
      headers: { ...metadataHeaders(metadata), 'if-match': options.etag },
      signal: options.signal,
    });
  }

  async tags(container: string, blob: string, options: CallOptions = {}): Promise<Map<string, string>> {
    const path = blobPath(container, blob);
    const response = await this.#send({ path, query: { comp: 'tags' }, signal: options.signal });
    const set = child(parseXml(await response.text()), 'TagSet');
    return new Map(children(set, 'Tag').map((tag) => [childText(tag, 'Key') ?? '', childText(tag, 'Value') ?? '']));
  }

  /** Replaces all tags of a blob. */
  async setTags(
    container: string,
    blob: string,
    tags: ReadonlyMap<string, string>,
    options: CallOptions = {},
  ): Promise<void> {
    const items = [...tags].map(([key, value]) => element('Tag', [element('Key', key), element('Value', value)]));
    await this.#send({
      method: 'PUT',
      path: blobPath(container, blob),
      query: { comp: 'tags' },
      headers: { 'content-type': 'application/xml' },
      body: document(element('Tags', [element('TagSet', items)])),
      signal: options.signal,
    });
  }

  #container(method: string, container: string, options: RequestOptions): Promise<Response> {
    const query = { restype: 'container', ...options.query };
    return this.#send({ ...options, method, path: `/${encodeURIComponent(container)}`, query });
  }

  #send(options: RequestOptions): Promise<Response> {
    return this.transport.send('blob', options);
  }
}

/**
 * The path of a blob. Browsers resolve the segments `.` and `..`, also encoded ones, so slashes beside them are encoded.
 */
export function blobPath(container: string, blob: string): string {
  const segments = blob.split('/');
  const hasDots = segments.some((segment) => segment === '.' || segment === '..');
  if (hasDots && segments.length === 1) {
    throw new ProtocolError(0, '', `A browser cannot address a blob with the name “${blob}”.`);
  }
  const separator = hasDots ? '%2F' : '/';
  return `/${encodeURIComponent(container)}/${segments.map(encodeURIComponent).join(separator)}`;
}

function containerOf(container: Element): Container {
  const properties = child(container, 'Properties');
  const access = childText(properties, 'PublicAccess');
  return {
    name: childText(container, 'Name') ?? '',
    lastModified: childText(properties, 'Last-Modified') ?? '',
    etag: childText(properties, 'Etag') ?? '',
    leaseState: childText(properties, 'LeaseState') ?? '',
    ...(access === 'container' || access === 'blob' ? { publicAccess: access } : {}),
    metadata: metadataOfXml(child(container, 'Metadata')),
  };
}

export function parseBlobPage(xml: string): BlobPage {
  const root = parseXml(xml);
  const list = child(root, 'Blobs');
  const next = childText(root, 'NextMarker');
  return {
    blobs: children(list, 'Blob').map(blobOf),
    prefixes: children(list, 'BlobPrefix').map(nameOf),
    ...(next ? { next } : {}),
  };
}

/** The name; one with characters that XML cannot have is percent-encoded. */
function nameOf(item: Element): string {
  const name = child(item, 'Name');
  const text = name?.textContent ?? '';
  return name?.getAttribute('Encoded') === 'true' ? decodeURIComponent(text) : text;
}

function blobOf(blob: Element): Blob {
  // One pass over the properties: lists have thousands of blobs, and pages must not pause.
  const properties = new Map(
    children(child(blob, 'Properties')).map((item) => [item.localName, item.textContent ?? '']),
  );
  const optional = (name: string) => properties.get(name) || undefined;
  const snapshot = childText(blob, 'Snapshot');
  const [accessTier, leaseState] = [optional('AccessTier'), optional('LeaseState')];
  return {
    name: nameOf(blob),
    bytes: Number(properties.get('Content-Length') ?? 0),
    contentType: properties.get('Content-Type') ?? '',
    blobType: properties.get('BlobType') ?? '',
    lastModified: properties.get('Last-Modified') ?? '',
    etag: properties.get('Etag') ?? '',
    ...(snapshot ? { snapshot } : {}),
    ...(accessTier ? { accessTier } : {}),
    ...(leaseState ? { leaseState } : {}),
    headers: storedHeaders(optional),
    metadata: metadataOfXml(child(blob, 'Metadata')),
  };
}

function storedHeaders(optional: (name: string) => string | undefined): BlobHeaders {
  const names = {
    contentType: 'Content-Type',
    contentEncoding: 'Content-Encoding',
    contentLanguage: 'Content-Language',
    contentDisposition: 'Content-Disposition',
    contentMd5: 'Content-MD5',
    cacheControl: 'Cache-Control',
  };
  const found = Object.entries(names).map(([member, name]) => [member, optional(name)] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

function propertiesOf(headers: Headers): BlobProperties {
  const optional = <Name extends string>(name: Name, ...from: string[]) => {
    const value = from.map((header) => headers.get(header)).find((text) => text !== null);
    return (value ? { [name]: value } : {}) as Partial<Record<Name, string>>;
  };
  return {
    bytes: Number(headers.get('content-length') ?? 0),
    contentType: headers.get('content-type') ?? '',
    blobType: headers.get('x-ms-blob-type') ?? '',
    etag: headers.get('etag') ?? '',
    lastModified: headers.get('last-modified') ?? '',
    tagCount: Number(headers.get('x-ms-tag-count') ?? 0),
    ...optional('contentEncoding', 'content-encoding'),
    ...optional('contentLanguage', 'content-language'),
    // The mount replaces the stored disposition by `attachment` and keeps it in a header of its own.
    ...optional('contentDisposition', 'x-larimar-content-disposition'),
    ...optional('contentMd5', 'x-ms-blob-content-md5', 'content-md5'),
    ...optional('created', 'x-ms-creation-time'),
    ...optional('accessTier', 'x-ms-access-tier'),
    ...optional('leaseState', 'x-ms-lease-state'),
    ...optional('leaseDuration', 'x-ms-lease-duration'),
    ...optional('copyStatus', 'x-ms-copy-status'),
    ...optional('copySource', 'x-ms-copy-source'),
    ...optional('archiveStatus', 'x-ms-archive-status'),
    metadata: metadataOf(headers),
  };
}
