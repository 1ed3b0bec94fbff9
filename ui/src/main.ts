/** Starts the console: the theme first, then the router and the keys, then the session. */

import { mount } from 'svelte';
import App from './App.svelte';
import { keys } from './app/keys.svelte';
import { router } from './app/router.svelte';
import { session } from './app/session.svelte';
import { theme } from './app/theme.svelte';
import './theme.css';

theme.start();
router.start();
keys.start();
void session.start();

const target = document.getElementById('app');
if (target) mount(App, { target });
